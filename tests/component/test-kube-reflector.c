/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and watches, including faults of the server. Reports are written to one line: "[" and "]"
 * enclose a complete list, "!" ends an interrupted one. */

#include "agent/kubeclient/reflector.h"

#include "agent/kubeclient/json-view.h"
#include "tests/component/kube-server.h"

#include <netinet/in.h>

typedef struct Follower {
        World world;
        KubeReflector *reflector;
        char heard[8192];
        size_t n, n_objects;
        bool is_terse; /* objects are only counted */
        char *last_error;
        unsigned status, n_errors;
        bool ends; /* the callback ends the reflector */
} Follower;

static void record_callback(Follower *f, const char *what) {
        size_t room = sizeof(f->heard) - f->n;

        f->n += (size_t) snprintf(f->heard + f->n, room, "%s%s", f->n > 0 ? " " : "", what);
        REQUIRE(f->n < sizeof(f->heard));
}

static void on_object(KubeWatchEvent change, const char *json, size_t length, void *userdata) {
        static const char *const signs[N_KUBE_WATCH_EVENTS] = { "", "+", "~", "-" };
        Follower *f = userdata;
        JsonView metadata = json_view_member((JsonView){ json, length }, "metadata");
        cleanup_free char *name = json_view_dup(json_view_member(metadata, "name"));
        cleanup_free char *version = json_view_dup(json_view_member(metadata, "resourceVersion"));
        char text[256];

        EXPECT_EQ(strlen(json), length);
        f->n_objects++;
        (void) snprintf(text, sizeof(text), "%s%s:%s", signs[change], name ? name : "?",
                        version ? version : "?");
        if (!f->is_terse)
                record_callback(f, text);
        if (f->ends)
                f->reflector = kube_reflector_free(f->reflector);
}

static void on_list_begin(void *userdata) {
        record_callback(userdata, "[");
}

static void on_list_end(bool is_complete, void *userdata) {
        record_callback(userdata, is_complete ? "]" : "!");
}

static void on_error(const char *error, unsigned status, void *userdata) {
        Follower *f = userdata;

        free(f->last_error);
        f->last_error = error ? strdup(error) : NULL;
        f->status = status;
        f->n_errors += error != NULL;
}

static void start_reflector(Follower *f, const char *path) {
        REQUIRE(kube_reflector_new(f->world.event,
                                   &(KubeReflectorSpec){ .client = f->world.client,
                                                         .path = path,
                                                         .field_selector = { "a", "b," },
                                                         .page_size = 2,
                                                         .on_object = on_object,
                                                         .on_list_begin = on_list_begin,
                                                         .on_list_end = on_list_end,
                                                         .on_error = on_error,
                                                         .userdata = f },
                                   &f->reflector) >= 0);
}

static void follower_init(Follower *f, const char *path) {
        memset(f, 0, sizeof(*f));
        world_init(&f->world, NULL);
        world_connect(&f->world);
        start_reflector(f, path);
}

static void follower_done(Follower *f) {
        f->reflector = kube_reflector_free(f->reflector);
        free(f->last_error);
        world_done(&f->world);
}

/* The number of requests to the server that contain all of these words; both lists and watches
 * count. */
static unsigned count_requests(Follower *f, const char *word, const char *other) {
        cleanup_answer Answer answer = { 0 };
        unsigned n = 0;

        ask(&f->world, &(KubeRequestSpec){ .path = "/log" }, &answer);
        for (char *line = answer.body, *end; line && *line; line = end ? end + 1 : NULL) {
                end = strchr(line, '\n');
                if (end)
                        *end = '\0';
                n += strstr(line, word) && strstr(line, other);
        }
        return n;
}

static unsigned count_watches(Follower *f) {
        return count_requests(f, "watch=true", "allowWatchBookmarks=true");
}

static void expect_heard(Follower *f, const char *expected) {
        WAIT_UNTIL(&f->world, strcmp(f->heard, expected) == 0);
        EXPECT_STREQ(f->heard, expected);
}

TEST(watch_survives_every_kind_of_end)
{
        static const struct {
                const char *name, *heard;
        } cases[] = {
                { "plain", "[ a:3 b:4 ] +c:11 ~a:12 -b:13" },
                { "pages", "[ a:3 b:4 c:5 ]" },
                { "expired-page", "[ a:3 ! [ a:3 b:12 ]" },
                { "expired-watch", "[ a:3 ] [ a:18 ] +b:21" },
                { "gone-watch", "[ a:3 ] [ a:18 ] +b:21" },
                { "broken-error", "[ a:3 ] [ ]" },
                { "restored", "[ a:3 ] +x:1001 [ a:3 b:30 ]" },
                { "closing", "[ ] +t0:11 +t1:12 +t2:13" },
                { "cut-watch", "[ ] +a:11 +b:12" },
                { "bad-events", "[ ] +?:11 +?:? +b:13" },
                { "split", "[ ] +a:11 +a:11" },
                { "no-json", "[ ] [ ] +a:21" },
                { "no-list", "[ ! [ ! [ ]" },
                { "cut-list", "[ a:3 b:4 ! [ a:3 ]" },
                { "unauthorized", "[ ]" },
                { "busy", "[ ]" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                Follower f;
                char path[64];

                printf("%s\n", cases[i].name);
                (void) snprintf(path, sizeof(path), "/c/%s", cases[i].name);
                follower_init(&f, path);
                EXPECT(!kube_reflector_is_synced(f.reflector));
                expect_heard(&f, cases[i].heard);
                EXPECT(kube_reflector_is_synced(f.reflector));
                WAIT_UNTIL(&f.world, f.last_error == NULL);
                follower_done(&f);
        }
}

TEST(first_list_may_be_cached_and_the_watch_continues_from_it)
{
        Follower f;

        follower_init(&f, "/c/plain");
        expect_heard(&f, "[ a:3 b:4 ] +c:11 ~a:12 -b:13");
        EXPECT_EQ(count_requests(&f,
                                 "GET /c/plain?fieldSelector=a%3Db%5C%2C&limit=2&"
                                 "resourceVersion=0",
                                 ""),
                  1);
        EXPECT_EQ(count_requests(&f, "/c/plain?fieldSelector=a%3Db%5C%2C&", "&resourceVersion=10&"),
                  1);
        EXPECT_EQ(count_watches(&f), 1);
        EXPECT_EQ(f.n_errors, 0);
        follower_done(&f);
}

TEST(pages_are_requested_by_their_continue_token)
{
        Follower f;

        follower_init(&f, "/c/pages");
        expect_heard(&f, "[ a:3 b:4 c:5 ]");
        EXPECT_EQ(count_requests(&f, "limit=2&continue=next%2F1", ""), 1);
        EXPECT_EQ(count_requests(&f, "limit=2&continue=next%2F2", ""), 1);
        EXPECT_EQ(count_requests(&f, "continue", "resourceVersion"), 0);
        follower_done(&f);
}

TEST(expired_continue_token_is_followed_by_an_unpaged_list)
{
        Follower f;

        follower_init(&f, "/c/expired-page");
        expect_heard(&f, "[ a:3 ! [ a:3 b:12 ]");
        EXPECT_EQ(count_requests(&f, "GET /c/expired-page?fieldSelector=a%3Db%5C%2C", "limit"), 2);
        EXPECT_EQ(count_requests(&f, "GET /c/expired-page?fieldSelector=a%3Db%5C%2C", ""),
                  3 + count_watches(&f));
        follower_done(&f);
}

TEST(closed_watch_is_resumed_without_a_list)
{
        Follower f;

        follower_init(&f, "/c/closing");
        expect_heard(&f, "[ ] +t0:11 +t1:12 +t2:13");
        WAIT_UNTIL(&f.world, count_watches(&f) == 4);
        EXPECT_EQ(count_requests(&f, "resourceVersion=13", "watch=true"), 1);
        EXPECT_EQ(count_requests(&f, "limit=", ""), 1);
        EXPECT_EQ(f.n_errors, 0);
        follower_done(&f);
}

TEST(watch_that_closes_at_once_is_resumed_with_back_off)
{
        uint64_t until;
        Follower f;

        follower_init(&f, "/c/closing-idle");
        expect_heard(&f, "[ ]");
        until = now_boottime_usec() + 6 * USEC_PER_SEC;
        while (now_boottime_usec() < until)
                REQUIRE(sd_event_run(f.world.event, USEC_PER_SEC) >= 0);
        EXPECT(count_watches(&f) >= 2);
        EXPECT(count_watches(&f) <= 5); /* not before 0, 0.8, 2.4, 5.6 seconds */
        EXPECT_EQ(count_requests(&f, "limit=", ""), 1);
        follower_done(&f);
}

TEST(bookmark_advances_the_resource_version)
{
        Follower f;

        follower_init(&f, "/c/bookmark");
        WAIT_UNTIL(&f.world, count_watches(&f) == 2);
        EXPECT_EQ(count_requests(&f, "resourceVersion=10", "watch=true"), 1);
        EXPECT_EQ(count_requests(&f, "resourceVersion=14", "watch=true"), 1);
        follower_done(&f);
}

TEST(refusal_is_reported_and_retried_slowly)
{
        uint64_t until;
        Follower f;

        follower_init(&f, "/c/refused");
        WAIT_UNTIL(&f.world, f.last_error != NULL);
        EXPECT_STREQ(f.last_error, "403 Forbidden: it is Forbidden");
        EXPECT_EQ(f.status, 403);
        until = now_boottime_usec() + 3 * USEC_PER_SEC;
        while (now_boottime_usec() < until)
                REQUIRE(sd_event_run(f.world.event, USEC_PER_SEC) >= 0);
        EXPECT_EQ(count_requests(&f, "/c/refused", ""), 1);
        EXPECT_EQ(f.n, 0);
        follower_done(&f);
}

TEST(relist_reads_the_collection_again)
{
        Follower f;

        follower_init(&f, "/c/expired-watch");
        expect_heard(&f, "[ a:3 ] [ a:18 ] +b:21");
        kube_reflector_relist(f.reflector, 100 * USEC_PER_MSEC);
        expect_heard(&f, "[ a:3 ] [ a:18 ] +b:21 [ a:18 ]");
        EXPECT_EQ(count_requests(&f, "limit=2&resourceVersion=0", ""), 1);
        WAIT_UNTIL(&f.world, count_watches(&f) == 3);
        follower_done(&f);
}

TEST(long_list_is_reported_object_by_object)
{
        Follower f;

        follower_init(&f, "/c/many");
        f.is_terse = true;
        expect_heard(&f, "[ ]");
        EXPECT_EQ(f.n_objects, 2000);
        follower_done(&f);
}

TEST(callback_may_free_the_reflector)
{
        Follower f;

        follower_init(&f, "/c/many");
        f.is_terse = f.ends = true;
        WAIT_UNTIL(&f.world, f.n_objects > 0);
        EXPECT_EQ(f.n_objects, 1);
        EXPECT(f.reflector == NULL);
        f.world.client = kube_client_free(f.world.client);
        follower_done(&f);
}

TEST(watch_resumes_as_soon_as_the_server_is_reachable)
{
        cleanup_answer Answer answer = { 0 };
        Follower f;

        follower_init(&f, "/c/plain");
        expect_heard(&f, "[ a:3 b:4 ] +c:11 ~a:12 -b:13");
        world_kill(&f.world);
        WAIT_UNTIL(&f.world, f.last_error != NULL);
        EXPECT(strstr(f.last_error, f.world.url));
        EXPECT_EQ(f.status, 0);
        /* Another server at another address; its authority has the same name but another key. */
        world_serve(&f.world, NULL);
        free(f.world.config.server);
        f.world.config.server = strdup(f.world.url);
        EXPECT_EQ(kube_client_reload(f.world.client, &f.world.config, NULL), 1);
        ask(&f.world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT_EQ(answer.status, 200);
        /* The new server does not know the client's resourceVersion: its history differs. */
        expect_heard(&f, "[ a:3 b:4 ] +c:11 ~a:12 -b:13 [ a:3 b:4 ] +c:11 ~a:12 -b:13");
        follower_done(&f);
}

/* A server that accepts connections and closes them. */
typedef struct Closing {
        World world;
        int fd;
        unsigned n_connections;
} Closing;

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        ((Closing *) userdata)->n_connections++;
        close(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
        return 0;
}

static void closing_init(Closing *c) {
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t length = sizeof(address);

        *c = (Closing){ .world = { .server_fd = -EBADF }, .fd = -EBADF };
        REQUIRE(sd_event_new(&c->world.event) >= 0);
        c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        REQUIRE(bind(c->fd, (struct sockaddr *) &address, length) == 0 && listen(c->fd, 64) == 0);
        REQUIRE(getsockname(c->fd, (struct sockaddr *) &address, &length) == 0);
        REQUIRE(sd_event_add_io(c->world.event, NULL, c->fd, EPOLLIN, on_connection, c) >= 0);
        (void) snprintf(c->world.url, sizeof(c->world.url), "https://127.0.0.1:%u",
                        ntohs(address.sin_port));
        c->world.config = (Kubeconfig){ .path = world_path("kubeconfig"),
                                        .server = strdup(c->world.url),
                                        .namespace = strdup("default") };
        world_connect(&c->world);
}

TEST(one_reflector_at_a_time_retries_an_unreachable_server)
{
        enum {
                MANY = 20,
                TRIES_MAX = 6, /* within this time */
                SECONDS = 6,
        };
        Follower followers[MANY] = { 0 };
        uint64_t end;
        unsigned first;
        Closing c;

        closing_init(&c);
        for (size_t i = 0; i < MANY; i++) {
                followers[i].world = c.world;
                start_reflector(&followers[i], "/c/plain");
        }
        for (size_t i = 0; i < MANY; i++)
                WAIT_UNTIL(&c.world, followers[i].last_error || followers[0].last_error);
        first = c.n_connections;
        end = now_boottime_usec() + SECONDS * USEC_PER_SEC;
        while (now_boottime_usec() < end)
                REQUIRE(sd_event_run(c.world.event, USEC_PER_SEC) >= 0);
        EXPECT(first <= MANY);
        EXPECT(c.n_connections > first);
        EXPECT(c.n_connections <= MANY + TRIES_MAX);
        for (size_t i = 0; i < MANY; i++) {
                kube_reflector_free(followers[i].reflector);
                free(followers[i].last_error);
        }
        world_done(&c.world);
        close(c.fd);
}
