/* SPDX-License-Identifier: Apache-2.0 */
#include "common/curl-loop.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>

enum {
        DRAIN_ROUNDS_MAX = 64, /* limit in one turn, so that other sources of the loop also run */
};

/* libcurl closes some sockets before it reports that it is done with them. Therefore the loop
 * watches a duplicate of the descriptor, which can always be removed. */
typedef struct CurlSocket CurlSocket;
struct CurlSocket {
        CurlSocket *next;
        CurlLoop *loop;
        curl_socket_t fd; /* libcurl's */
        sd_event_source *source;
        bool may_have_data; /* data that libcurl has read, but not delivered yet */
};

struct CurlLoop {
        const CurlLibrary *curl;
        CurlLoopSpec spec;
        CURLM *multi;
        CurlSocket *sockets;
        sd_event_source *timer;
        sd_event_source *due; /* libcurl requested a timeout of 0, or must be drained */
        bool is_timeout_due;
        bool is_busy;
        bool is_doomed; /* freed as soon as it is not busy */
};

/* Reports completed transfers, one by one. */
static void finish_curl_transfers(CurlLoop *loop) {
        int left;

        while (!loop->is_doomed) {
                CURLMsg *message = loop->curl->multi_info_read(loop->multi, &left);

                if (!message)
                        break;
                if (message->msg == CURLMSG_DONE)
                        loop->spec.on_done(message->easy_handle, message->data.result,
                                           loop->spec.userdata);
        }
}

static CurlSocket *find_undrained_socket(const CurlLoop *loop) {
        for (CurlSocket *watched = loop->sockets; watched; watched = watched->next)
                if (watched->may_have_data)
                        return watched;
        return NULL;
}

/* libcurl 7.88 delivers at most two CURLOPT_BUFFERSIZE chunks of an HTTP/2 stream, and keeps the
 * rest until more arrives on the connection, which may be much later. So libcurl is called as if
 * the socket were readable until it delivers nothing more. */
static void drain_curl_sockets(CurlLoop *loop) {
        CurlSocket *watched;
        int running;

        for (unsigned i = 0;
             i < DRAIN_ROUNDS_MAX && (watched = find_undrained_socket(loop)) != NULL; i++) {
                watched->may_have_data = false;
                (void) loop->curl->multi_socket_action(loop->multi, watched->fd, CURL_CSELECT_IN,
                                                       &running);
        }
}

static int update_due_source(const CurlLoop *loop) {
        bool is_due = loop->is_timeout_due || find_undrained_socket(loop);

        return sd_event_source_set_enabled(loop->due, is_due ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void run_curl_socket_action(CurlLoop *loop, curl_socket_t fd, int what) {
        int running;

        loop->is_busy = true;
        (void) loop->curl->multi_socket_action(loop->multi, fd, what, &running);
        drain_curl_sockets(loop);
        (void) update_due_source(loop);
        finish_curl_transfers(loop);
        loop->is_busy = false;
        if (loop->is_doomed)
                curl_loop_free(loop);
        else if (loop->spec.on_settle)
                loop->spec.on_settle(loop->spec.userdata);
}

void curl_loop_drain(CurlLoop *loop) {
        for (CurlSocket *watched = loop->sockets; watched; watched = watched->next)
                watched->may_have_data = true;
        (void) update_due_source(loop);
}

static void unlink_curl_socket(CurlSocket *watched) {
        CurlSocket **at = &watched->loop->sockets;

        while (*at && *at != watched)
                at = &(*at)->next;
        if (*at)
                *at = watched->next;
}

static void curl_socket_free(CurlSocket *watched) {
        if (!watched)
                return;
        unlink_curl_socket(watched);
        sd_event_source_disable_unref(watched->source);
        free(watched);
}
DEFINE_CLEANUP(CurlSocket *, curl_socket_free)

static int on_curl_socket(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        CurlSocket *watched = userdata;
        int what = 0;

        if (events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP))
                what |= CURL_CSELECT_IN;
        if (events & EPOLLOUT)
                what |= CURL_CSELECT_OUT;
        if (events & EPOLLERR)
                what |= CURL_CSELECT_ERR;
        run_curl_socket_action(watched->loop, watched->fd, what);
        return 0;
}

static int on_curl_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        run_curl_socket_action(userdata, CURL_SOCKET_TIMEOUT, 0);
        return 0;
}

static int on_curl_timeout_due(sd_event_source *source, void *userdata) {
        CurlLoop *loop = userdata;

        loop->is_timeout_due = false;
        run_curl_socket_action(loop, CURL_SOCKET_TIMEOUT, 0);
        return 0;
}

static int add_curl_socket_source(CurlSocket *watched, uint32_t events) {
        const CurlLoopSpec *spec = &watched->loop->spec;
        cleanup_close int copy = fcntl(watched->fd, F_DUPFD_CLOEXEC, 3);
        int r;

        if (copy < 0)
                return -errno;
        r = sd_event_add_io(spec->event, &watched->source, copy, events, on_curl_socket, watched);
        if (r < 0)
                return r;
        r = sd_event_source_set_io_fd_own(watched->source, true);
        if (r < 0)
                return r;
        (void) TAKE_FD(copy);
        (void) sd_event_source_set_description(watched->source, spec->description);
        return sd_event_source_set_priority(watched->source, spec->priority);
}

static int curl_socket_new(CurlLoop *loop, curl_socket_t fd, uint32_t events) {
        cleanup_with(curl_socket_freep) CurlSocket *watched = calloc(1, sizeof(*watched));

        if (!watched)
                return -1;
        watched->loop = loop;
        watched->fd = fd;
        if (add_curl_socket_source(watched, events) < 0 ||
            loop->curl->multi_assign(loop->multi, fd, watched) != CURLM_OK)
                return -1;
        watched->next = loop->sockets;
        loop->sockets = TAKE_PTR(watched);
        return 0;
}

/* The number of the descriptor may meanwhile belong to a different socket. */
static bool is_same_socket(const CurlSocket *watched) {
        struct stat ours, theirs;

        return fstat(sd_event_source_get_io_fd(watched->source), &ours) >= 0 &&
               fstat(watched->fd, &theirs) >= 0 && ours.st_ino == theirs.st_ino;
}

static int curl_socket_changed(CURL *easy, curl_socket_t fd, int what, void *userdata,
                               void *known) {
        CurlSocket *watched = known;
        uint32_t events = 0;

        if (what == CURL_POLL_REMOVE) {
                curl_socket_free(watched);
                return 0;
        }
        if (what != CURL_POLL_OUT)
                events |= EPOLLIN;
        if (what != CURL_POLL_IN)
                events |= EPOLLOUT;
        if (!watched)
                return curl_socket_new(userdata, fd, events);
        if (is_same_socket(watched))
                return sd_event_source_set_io_events(watched->source, events) < 0 ? -1 : 0;
        watched->source = sd_event_source_disable_unref(watched->source);
        return add_curl_socket_source(watched, events) < 0 ? -1 : 0;
}

/* libcurl must not be called from here. A timeout of 0 does not use the timer, which would be one
 * more wake-up. */
static int curl_timer_changed(CURLM *multi, long timeout_msec, void *userdata) {
        CurlLoop *loop = userdata;

        loop->is_timeout_due = timeout_msec == 0;
        if (update_due_source(loop) < 0)
                return -1;
        if (timeout_msec <= 0)
                return sd_event_source_set_enabled(loop->timer, SD_EVENT_OFF) < 0 ? -1 : 0;
        if (sd_event_source_set_time_relative(loop->timer,
                                              (uint64_t) timeout_msec * USEC_PER_MSEC) < 0)
                return -1;
        return sd_event_source_set_enabled(loop->timer, SD_EVENT_ONESHOT) < 0 ? -1 : 0;
}

static int disable_curl_source(const CurlLoop *loop, sd_event_source *source) {
        int r = sd_event_source_set_enabled(source, SD_EVENT_OFF);

        return r < 0 ? r : sd_event_source_set_priority(source, loop->spec.priority);
}

static int add_curl_timer(CurlLoop *loop) {
        int r = sd_event_add_time_relative(loop->spec.event, &loop->timer, CLOCK_BOOTTIME, 0,
                                           USEC_PER_MSEC, on_curl_timer, loop);

        if (r < 0)
                return r;
        r = disable_curl_source(loop, loop->timer);
        if (r < 0)
                return r;
        r = sd_event_add_defer(loop->spec.event, &loop->due, on_curl_timeout_due, loop);
        if (r < 0)
                return r;
        return disable_curl_source(loop, loop->due);
}

int curl_loop_new(const CurlLoopSpec *spec, CurlLoop **ret, Error *reterr) {
        const CurlLibrary *curl = curl_library(reterr);
        cleanup_with(curl_loop_freep) CurlLoop *loop = NULL;
        int r;

        if (!curl)
                return -ELIBACC;
        loop = calloc(1, sizeof(*loop));
        if (!loop)
                return -ENOMEM;
        loop->curl = curl;
        loop->spec = *spec;
        loop->multi = curl->multi_init();
        if (!loop->multi)
                return -ENOMEM;
        r = add_curl_timer(loop);
        if (r < 0)
                return r;
        curl->multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, curl_socket_changed);
        curl->multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
        curl->multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, curl_timer_changed);
        curl->multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
        *ret = TAKE_PTR(loop);
        return 0;
}

CurlLoop *curl_loop_free(CurlLoop *loop) {
        if (!loop)
                return NULL;
        if (loop->is_busy) {
                loop->is_doomed = true;
                return NULL;
        }
        if (loop->multi)
                loop->curl->multi_cleanup(loop->multi);
        sd_event_source_disable_unref(loop->timer);
        sd_event_source_disable_unref(loop->due);
        free(loop);
        return NULL;
}

void curl_loop_set_streams(CurlLoop *loop, unsigned max) {
        loop->curl->multi_setopt(loop->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long) max);
}

void curl_loop_set_connections(CurlLoop *loop, unsigned max) {
        loop->curl->multi_setopt(loop->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long) max);
}

void curl_loop_set_open_connections(CurlLoop *loop, unsigned max) {
        loop->curl->multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS, (long) max);
}

int curl_loop_add(CurlLoop *loop, CURL *easy) {
        return loop->curl->multi_add_handle(loop->multi, easy) == CURLM_OK ? 0 : -EIO;
}

void curl_loop_remove(CurlLoop *loop, CURL *easy) {
        (void) loop->curl->multi_remove_handle(loop->multi, easy);
}

bool curl_loop_is_busy(const CurlLoop *loop) {
        return loop->is_busy;
}
