/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/http/client-limits.h"

#include "common/cleanup.h"

#include <unistd.h>

static bool is_root_user(uid_t uid) {
        return uid == 0 || uid == geteuid();
}

static size_t count_served_clients(const ClientLimits *limits, uid_t uid) {
        size_t n = 0;

        for (size_t i = 0; i < limits->n_served; i++)
                n += limits->served[i] == uid;
        return n;
}

static size_t count_served_others(const ClientLimits *limits) {
        size_t n = 0;

        for (size_t i = 0; i < limits->n_served; i++)
                n += !is_root_user(limits->served[i]);
        return n;
}

static bool is_service_user(const ClientLimits *limits, uid_t uid) {
        return limits->service_uid != 0 && uid == limits->service_uid;
}

bool client_limits_allow(const ClientLimits *limits, uid_t uid) {
        if (limits->n_served >= CLIENTS_MAX)
                return false;
        if (is_root_user(uid))
                return true;
        return count_served_others(limits) < CLIENTS_MAX - CLIENTS_OF_ROOT &&
               (is_service_user(limits, uid) ||
                count_served_clients(limits, uid) < CLIENTS_OF_USER_MAX);
}

void client_limits_add(ClientLimits *limits, uid_t uid) {
        if (limits->n_served < CLIENTS_MAX)
                limits->served[limits->n_served++] = uid;
}

void client_limits_remove(ClientLimits *limits, uid_t uid) {
        for (size_t i = 0; i < limits->n_served; i++)
                if (limits->served[i] == uid) {
                        limits->served[i] = limits->served[--limits->n_served];
                        return;
                }
}

bool client_limits_wait_take(ClientLimits *limits, uid_t uid, int fd) {
        size_t n = 0, max = is_service_user(limits, uid) ? WAITING_CLIENTS_MAX / 2
                                                         : WAITING_CLIENTS_OF_USER_MAX;

        for (size_t i = 0; i < limits->n_waiting; i++)
                n += limits->waiting[i].uid == uid;
        if (limits->n_waiting == WAITING_CLIENTS_MAX || n >= max)
                return false;
        limits->waiting[limits->n_waiting++] = (WaitingClient){ .uid = uid, .fd = fd };
        return true;
}

int client_limits_next(ClientLimits *limits) {
        for (size_t i = 0; i < limits->n_waiting; i++) {
                int fd = limits->waiting[i].fd;

                if (!client_limits_allow(limits, limits->waiting[i].uid))
                        continue;
                limits->n_waiting--;
                memmove(&limits->waiting[i], &limits->waiting[i + 1],
                        (limits->n_waiting - i) * sizeof(*limits->waiting));
                return fd;
        }
        return -EAGAIN;
}

void client_limits_done(ClientLimits *limits) {
        for (size_t i = 0; i < limits->n_waiting; i++)
                close_fd(limits->waiting[i].fd);
        limits->n_waiting = 0;
}
