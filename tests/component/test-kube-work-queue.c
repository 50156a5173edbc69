/* SPDX-License-Identifier: Apache-2.0 */
/* The work queue, with a server that sometimes rejects writes. */

#include "agent/kubeclient/work-queue.h"

#include "tests/component/kube-server.h"

#include <netinet/in.h>

typedef struct Author {
        World world;
        KubeWorkQueue *writer;
        unsigned n_made, n_answers, n_again;
        const char *path; /* NULL: nothing is to be written */
        KubeWorkResult verdict;
        unsigned status;
        bool marks, forgets, ends; /* what it does with the key when the result arrives */
        char order[1024];
} Author;

static int build_author_request(const char *key, KubeRequestSpec *ret, void *userdata) {
        Author *author = userdata;
        size_t n = strlen(author->order);

        author->n_made++;
        (void) snprintf(author->order + n, sizeof(author->order) - n, "%s ", key);
        if (!author->path)
                return 0;
        *ret = (KubeRequestSpec){ .method = "PATCH",
                                  .path = strdup(author->path),
                                  .body = strdup("{}"),
                                  .body_length = 2 };
        return ret->path && ret->body ? 1 : -ENOMEM;
}

static void free_author_request(KubeRequestSpec *call, void *userdata) {
        free((void *) (uintptr_t) call->path);
        free((void *) (uintptr_t) call->body);
}

static KubeWorkResult on_author_response(const char *key, const KubeResponse *answer,
                                         void *userdata) {
        Author *author = userdata;

        author->n_answers++;
        author->status = answer->status;
        if (author->marks) {
                author->marks = false;
                EXPECT_EQ(kube_work_queue_add(author->writer, key), 0);
        }
        if (author->forgets)
                kube_work_queue_forget(author->writer, key);
        if (author->ends)
                author->writer = kube_work_queue_free(author->writer);
        if (author->n_again > 0) {
                author->n_again--;
                return author->verdict;
        }
        return KUBE_WORK_DONE;
}

static void author_init(Author *author, const char *path) {
        *author = (Author){ .path = path };
        world_init(&author->world, NULL);
        world_connect(&author->world);
        REQUIRE(kube_work_queue_new(author->world.event,
                                    &(KubeWorkQueueSpec){ .client = author->world.client,
                                                          .max_parallel = 2,
                                                          .build_request = build_author_request,
                                                          .free_request = free_author_request,
                                                          .on_response = on_author_response,
                                                          .userdata = author },
                                    &author->writer) >= 0);
}

static void author_done(Author *author) {
        author->writer = kube_work_queue_free(author->writer);
        world_done(&author->world);
}

static void mark(Author *author, const char *key) {
        REQUIRE(kube_work_queue_add(author->writer, key) >= 0);
}

static void finish(Author *author) {
        WAIT_UNTIL(&author->world, kube_work_queue_length(author->writer) == 0);
}

static void turn_for(Author *author, uint64_t usec) {
        uint64_t now = now_boottime_usec(), until = now + usec;

        for (; now < until; now = now_boottime_usec())
                REQUIRE(sd_event_run(author->world.event, until - now) >= 0);
}

TEST(a_hundred_changes_of_one_object_are_one_request)
{
        Author author;

        author_init(&author, "/echo");
        for (size_t i = 0; i < 100; i++)
                mark(&author, "a");
        EXPECT_EQ(kube_work_queue_length(author.writer), 1);
        finish(&author);
        EXPECT_EQ(author.n_made, 1);
        EXPECT_EQ(author.status, 200);
        mark(&author, "a");
        finish(&author);
        EXPECT_EQ(author.n_made, 2);
        author_done(&author);
}

TEST(change_during_a_request_is_sent_afterwards)
{
        Author author;

        author_init(&author, "/echo");
        author.marks = true;
        mark(&author, "a");
        finish(&author);
        EXPECT_EQ(author.n_made, 2);
        EXPECT_EQ(author.n_answers, 2);
        author_done(&author);
}

TEST(keys_are_written_in_the_order_in_which_they_were_marked)
{
        Author author;

        author_init(&author, "/echo");
        mark(&author, "c");
        mark(&author, "a");
        mark(&author, "c");
        mark(&author, "b");
        finish(&author);
        EXPECT_STREQ(author.order, "c a b ");
        author_done(&author);
}

TEST(nothing_is_sent_if_nothing_is_due)
{
        Author author;

        author_init(&author, NULL);
        mark(&author, "a");
        finish(&author);
        EXPECT_EQ(author.n_made, 1);
        EXPECT_EQ(kube_client_state(author.world.client).n_requests, 0);
        author_done(&author);
}

TEST(conflict_is_retried_at_once)
{
        Author author;

        author_init(&author, "/status/409");
        author.verdict = KUBE_WORK_RETRY_NOW;
        author.n_again = 3;
        mark(&author, "a");
        finish(&author);
        EXPECT_EQ(author.n_made, 4);
        EXPECT_EQ(author.status, 409);
        author_done(&author);
}

TEST(temporary_refusals_are_retried_soon_and_per_key)
{
        uint64_t began = now_boottime_usec();
        char key[2] = "a";
        Author author;

        author_init(&author, "/status/403");
        author.verdict = KUBE_WORK_RETRY_SOON;
        author.n_again = 12;
        for (; key[0] < 'g'; key[0]++)
                mark(&author, key);
        finish(&author);
        EXPECT_EQ(author.n_made, 18);
        EXPECT(now_boottime_usec() - began >= USEC_PER_SEC);
        author_done(&author);
}

TEST(repeated_conflict_is_retried_with_back_off)
{
        Author author;

        author_init(&author, "/status/409");
        author.verdict = KUBE_WORK_RETRY_NOW;
        author.n_again = 1000;
        mark(&author, "a");
        WAIT_UNTIL(&author.world, author.n_made >= 6);
        turn_for(&author, 1500 * USEC_PER_MSEC);
        EXPECT(author.n_made <= 12);
        EXPECT_EQ(kube_work_queue_length(author.writer), 1);
        author_done(&author);
}

TEST(unavailable_server_is_retried_without_a_callback)
{
        Author author;

        author_init(&author, "/once/a/2");
        mark(&author, "a");
        finish(&author);
        EXPECT_EQ(author.n_made, 3);
        EXPECT_EQ(author.n_answers, 1);
        EXPECT_EQ(author.status, 200);
        author_done(&author);
}

TEST(failed_keys_are_retried_at_most_once_a_second)
{
        Author author;
        unsigned before;

        author_init(&author, "/status/503");
        for (char key[2] = "a"; key[0] < 'k'; key[0]++)
                mark(&author, key);
        WAIT_UNTIL(&author.world, author.n_made >= 10);
        before = author.n_made;
        turn_for(&author, 5 * USEC_PER_SEC);
        EXPECT(author.n_made - before >= 2);
        EXPECT(author.n_made - before <= 7);
        EXPECT_EQ(kube_work_queue_length(author.writer), 10);
        author_done(&author);
}

TEST(one_request_tests_an_unreachable_server_then_all_are_sent)
{
        cleanup_answer Answer answer = { 0 };
        uint64_t begun;
        Author author;

        author_init(&author, "/echo");
        world_kill(&author.world);
        for (char key[2] = "a"; key[0] < 'u'; key[0]++)
                mark(&author, key);
        turn_for(&author, 3 * USEC_PER_SEC);
        EXPECT(author.n_made >= 2);
        EXPECT(author.n_made <= 5); /* two at first, then one after 0.8 s and one after 1.6 s */
        EXPECT_EQ(kube_work_queue_length(author.writer), 20);
        world_serve(&author.world, NULL);
        free(author.world.config.server);
        author.world.config.server = strdup(author.world.url);
        EXPECT_EQ(kube_client_reload(author.world.client, &author.world.config, NULL), 1);
        begun = now_boottime_usec();
        ask(&author.world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        finish(&author);
        EXPECT_EQ(author.n_answers, 20);
        EXPECT(now_boottime_usec() - begun < 18 * USEC_PER_SEC); /* more than one a second */
        author_done(&author);
}

/* A server that accepts connections and never responds. */
static int open_silent_server(const char *url) {
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                       .sin_port = htons((uint16_t) strtoul(strrchr(url, ':') + 1,
                                                                            NULL, 10)) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        REQUIRE(fd >= 0);
        REQUIRE(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) == 0);
        REQUIRE(bind(fd, (struct sockaddr *) &address, sizeof(address)) == 0);
        REQUIRE(listen(fd, 16) == 0);
        return fd;
}

TEST(loop_does_not_spin_while_a_request_tests_a_silent_server)
{
        unsigned n_turns = 0;
        uint64_t now, until;
        Author author;
        int fd;

        author_init(&author, "/echo");
        world_kill(&author.world);
        mark(&author, "a");
        mark(&author, "b");
        mark(&author, "c");
        turn_for(&author, USEC_PER_SEC / 10);
        fd = open_silent_server(author.world.url);
        until = now_boottime_usec() + 4 * USEC_PER_SEC;
        while ((now = now_boottime_usec()) < until) {
                REQUIRE(sd_event_run(author.world.event, until - now) >= 0);
                n_turns++;
        }
        EXPECT_EQ(kube_work_queue_length(author.writer), 3);
        EXPECT(n_turns < 500);
        close_fd(fd);
        author_done(&author);
}

TEST(request_of_a_forgotten_key_is_cancelled)
{
        Author author;

        author_init(&author, "/silent");
        mark(&author, "a");
        WAIT_UNTIL(&author.world, author.n_made == 1);
        kube_work_queue_forget(author.writer, "a");
        EXPECT_EQ(kube_work_queue_length(author.writer), 0);
        author.path = "/echo";
        mark(&author, "b");
        finish(&author);
        EXPECT_EQ(author.n_answers, 1);
        author_done(&author);
}

TEST(callback_may_forget_the_key_and_free_the_queue)
{
        for (unsigned i = 0; i < 4; i++) {
                Author author;

                author_init(&author, "/echo");
                author.marks = i & 1;
                author.forgets = i != 3;
                author.ends = i >= 2;
                mark(&author, "a");
                mark(&author, "b");
                WAIT_UNTIL(&author.world, author.n_answers >= (author.ends ? 1 : 2));
                if (!author.ends)
                        EXPECT_EQ(kube_work_queue_length(author.writer), 0);
                turn_for(&author, 100 * USEC_PER_MSEC);
                author_done(&author);
        }
}
