/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/container/container-attempt.h"

#include "agent/bundle/actual-resources.h"
#include "agent/bundle/image-volumes.h"
#include "agent/bundle/log-paths.h"
#include "agent/model/signals.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* lifecycle.stopSignal, or the image's signal. 0: neither is set. */
static int find_stop_signal(const Container *spec, const Image *image) {
        if (spec->lifecycle && spec->lifecycle->stop_signal)
                return signal_from_name(spec->lifecycle->stop_signal);
        return image->stop_signal ? signal_from_name(image->stop_signal) : 0;
}

int container_attempt_start(ContainerAttempt *attempt, const Container *spec, const Image *image,
                            unsigned generation) {
        char *image_id = strdup(image->digest), *image_name = strdup(spec->image);

        if (!image_id || !image_name) {
                free(image_id);
                free(image_name);
                return -ENOMEM;
        }
        free(attempt->image_id);
        attempt->image_id = image_id;
        free(attempt->image_name);
        attempt->image_name = image_name;
        attempt->stop_signal = find_stop_signal(spec, image);
        attempt->generation = generation;
        attempt->has_run = true;
        return 0;
}

void container_attempt_adopt_take(ContainerAttempt *attempt, AttemptCheckpoint *checkpoint,
                                  unsigned number) {
        attempt->generation = checkpoint->generation;
        attempt->stop_signal = checkpoint->stop_signal;
        free(attempt->image_id);
        attempt->image_id = TAKE_PTR(checkpoint->image_id);
        container_user_done(&attempt->user);
        attempt->user = checkpoint->user;
        attempt->user_attempt = number;
        checkpoint->user = (ContainerUser){ 0 };
        attempt->has_run = true;
}

/* Read from the bundle once per attempt, because it does not change. */
void container_attempt_load_user(ContainerAttempt *attempt, const ContainerInstance *container,
                                 unsigned number) {
        const PodInstance *pod = container->pod;

        if (attempt->user.is_known && attempt->user_attempt != number)
                container_user_done(&attempt->user);
        if (attempt->user.is_known)
                return;
        attempt->user_attempt = number;
        (void) bundle_load_actual_user(pod->context->bundle, pod->pod, container->spec->name,
                                       number, &attempt->user);
}

int container_attempt_fill_status(ContainerAttempt *attempt, const ContainerInstance *container,
                                  unsigned number, ContainerStatus *ret) {
        ret->stop_signal = attempt->stop_signal > 0 ? attempt->stop_signal : SIGTERM;
        container_attempt_load_user(attempt, container, number);
        return attempt->user.is_known ? container_user_copy(&attempt->user, &ret->user) : 0;
}

/* The name under which the attempt requested its image; the spec may have been edited since. */
int container_attempt_fill_image(const ContainerAttempt *attempt,
                                 const ContainerInstance *container, ContainerStatus *ret) {
        ret->image = strdup(attempt->image_name ? attempt->image_name : container->spec->image);
        ret->image_id = strdup(strna(attempt->image_id));
        return ret->image && ret->image_id ? 0 : -ENOMEM;
}

void container_attempt_list_images(const ContainerAttempt *attempt,
                                   const ContainerInstance *container, ImageSet *ret) {
        const PodInstance *pod = container->pod;
        cleanup_strv char **digests = NULL;

        if (!container_machine_has_process(container->machine))
                return;
        image_set_add(ret, attempt->image_id);
        if (bundle_load_volume_images(pod->context->bundle, pod->pod, container->spec->name,
                                      container_machine_attempt(container->machine), &digests) < 0)
                ret->is_everything = true;
        strv_foreach(digest, digests)
                image_set_add(ret, *digest);
}

static void recover_known_end(ContainerAttempt *attempt, const ContainerInstance *container,
                              const TerminatedContainer *known) {
        ContainerMachine *machine = container->machine;
        AttemptCheckpoint checkpoint;

        if (!container_machine_recover_exit(machine, known->attempt, &known->exit, known->reason))
                return;
        attempt_checkpoint_parse(strna(known->checkpoint), &checkpoint);
        container_attempt_adopt_take(attempt, &checkpoint, known->attempt);
        attempt_checkpoint_done(&checkpoint);
        if (known->has_previous)
                container_machine_recover_last(machine, &known->previous, known->previous_reason);
}

/* The restart count, which no shim can report, is part of the names of the logs. After a power cut
 * the logs may be missing, because they were not yet written or are kept in memory; the checkpoint
 * of how a container ended is on disk. */
void container_attempt_recover(ContainerAttempt *attempt, const ContainerInstance *container,
                               const TerminatedContainers *terminated) {
        const PodInstance *pod = container->pod;
        const char *name = container->spec->name;
        int last = MAX(bundle_last_logged_attempt(pod->context->bundle, pod->pod, name),
                       terminated_containers_last_attempt(terminated, name));
        TerminatedContainer known;

        if (last < 0)
                return;
        if (!terminated_containers_find(terminated, name, (unsigned) last, &known)) {
                container_machine_recover(container->machine, (unsigned) last, now_realtime_usec());
                return;
        }
        recover_known_end(attempt, container, &known);
        terminated_container_done(&known);
}

static ContainerExit exit_of_state(const ContainerState *state) {
        return (ContainerExit){ .exit_code = state->exit_code,
                                .started_at = state->started_at,
                                .finished_at = state->finished_at,
                                .message = state->message };
}

bool container_describe_end(const ContainerInstance *container, const char *checkpoint,
                            TerminatedContainer *ret) {
        const ContainerMachine *machine = container->machine;
        const ContainerState *end = container_machine_terminated_state(machine),
                             *previous = container_machine_last_state(machine);

        if (!end)
                return false;
        *ret = (TerminatedContainer){ .name = container->spec->name,
                                      .attempt = container_machine_attempt(machine),
                                      .exit = exit_of_state(end),
                                      .has_previous = previous != NULL,
                                      .text = strdup(checkpoint) };
        ret->checkpoint = ret->text;
        (void) snprintf(ret->reason, sizeof(ret->reason), "%s", strna(end->reason));
        if (previous) {
                ret->previous = exit_of_state(previous);
                (void) snprintf(ret->previous_reason, sizeof(ret->previous_reason), "%s",
                                strna(previous->reason));
        }
        return true;
}

void container_attempt_done(ContainerAttempt *attempt) {
        free(attempt->image_id);
        free(attempt->image_name);
        container_user_done(&attempt->user);
}
