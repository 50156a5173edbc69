/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces common/child.c: no process is started. */

#include "common/child.h"

#include "common/cleanup.h"
#include "tests/unit/pods/worker/fakes.h"

FakeChildBehaviour fake_children;

struct Child {
        sd_event_source *end; /* NULL: it hangs */
        child_done_t done;
        void *userdata;
        void (*run)(void *work);
        void *work;
        int status;
        char *output, *error;
};

static int on_fake_child_end(sd_event_source *source, void *userdata) {
        Child *child = userdata;
        cleanup_free char *output = TAKE_PTR(child->output), *error = TAKE_PTR(child->error);
        const ChildResult result = { .code = CLD_EXITED,
                                     .status = child->status,
                                     .output = strna(output),
                                     .output_length = strlen(strna(output)),
                                     .error = strna(error) };
        child_done_t done = child->done;
        void *done_userdata = child->userdata;

        if (child->run && child->status == 0)
                child->run(TAKE_PTR(child->work));
        child_free(child);
        done(&result, done_userdata);
        return 0;
}

Child *fake_child_new(sd_event *event, child_done_t done, void *userdata, void (*run)(void *work),
                      void *work, int status, const char *error) {
        Child *child = calloc(1, sizeof(*child));

        REQUIRE(child);
        *child = (Child){ .done = done,
                          .userdata = userdata,
                          .run = run,
                          .work = work,
                          .status = status,
                          .error = strdup(strna(error)) };
        if (!fake_children.hangs)
                REQUIRE(sd_event_add_defer(event, &child->end, on_fake_child_end, child) >= 0);
        return child;
}

static const char *base_name(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

int child_spawn(sd_event *event, const ChildSpec *spec, child_done_t done, void *userdata,
                Child **ret, Error *reterr) {
        fake_request("child %s %s", base_name(spec->argv[0]), strna(spec->argv[1]));
        *ret = fake_child_new(event, done, userdata, NULL, NULL, fake_children.status, "it failed");
        (*ret)->output = strdup(strna(fake_children.output));
        return 0;
}

Child *child_free(Child *child) {
        if (!child)
                return NULL;
        sd_event_source_disable_unref(child->end);
        free(child->work);
        free(child->output);
        free(child->error);
        free(child);
        return NULL;
}
