/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* In which order a pod's containers begin and end, as Kubernetes has it: those of init one after
 * another, each to its end or, a sidecar, until it has started; then all others together. At the
 * end the others first, then the sidecars in reverse. Pure: facts in, what is due out. */

#include "agent/model/containers.h"

typedef enum OrderAction {
        ORDER_NOTHING,
        ORDER_START,
        ORDER_RETIRE, /* it runs on, and is not started any more */
        ORDER_STOP,
} OrderAction;

/* One container; a pod's stand as in pod_nth_container(). */
typedef struct OrderEntry {
        ContainerRole role;
        bool has_run;     /* in this sandbox, and since all were restarted */
        bool has_started; /* it runs, and others may build on it */
        bool is_waiting;  /* to be started */
        bool is_finished;
        bool has_succeeded; /* finished, with 0 */
        OrderAction action; /* out */
} OrderEntry;

typedef enum PodCourse {
        COURSE_INITIALIZING,
        COURSE_RUNNING,
        COURSE_FAILED, /* a container of init failed for good */
        COURSE_DONE,   /* all main containers have ended for good */
} PodCourse;

PodCourse order_course(const OrderEntry *entries, size_t n);

typedef struct OrderWish {
        bool must_end;  /* whatever the course */
        bool must_hold; /* nothing is started */
        bool is_late;   /* the time to end in order is over: all at once */
} OrderWish;

/* Says for each container what is due now. */
void order_plan(OrderEntry *entries, size_t n, const OrderWish *wish);

/* Whether a container that was held back by itself (a back-off, an image) may go on. */
bool order_allows(const OrderEntry *entries, size_t n, size_t i);
