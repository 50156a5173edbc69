/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/signals.h"

#include "agent/model/names.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
        REALTIME_OFFSET_MAX = 15, /* Kubernetes' list: RTMIN to RTMIN+15, RTMAX-14 to RTMAX */
};

/* Names that sigabbrev_np() does not return for the number. */
static const struct {
        const char *name;
        int number;
} aliases[] = {
        { "CLD", SIGCHLD },
        { "IO", SIGIO },
        { "IOT", SIGIOT },
        { "POLL", SIGPOLL },
};

/* "+3" or "-3": up to 'max'; the empty string is 0. -1 for other texts. */
static int parse_offset(const char *text, char sign, long max) {
        char *end;
        long n;

        if (!text[0])
                return 0;
        if (text[0] != sign || text[1] < '0' || text[1] > '9')
                return -1;
        n = strtol(text + 1, &end, 10);
        return *end == '\0' && n <= max ? (int) n : -1;
}

static int realtime_from_name(const char *name) {
        bool is_max = strncasecmp(name, "RTMAX", 5) == 0;
        int offset;

        if (!is_max && strncasecmp(name, "RTMIN", 5) != 0)
                return 0;
        offset = parse_offset(name + 5, is_max ? '-' : '+', SIGRTMAX - SIGRTMIN);
        if (offset < 0)
                return 0;
        return is_max ? SIGRTMAX - offset : SIGRTMIN + offset;
}

int signal_from_name(const char *text) {
        const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
        char *end;
        long number = strtol(text, &end, 10);

        if (end != text && *end == '\0')
                return number > 0 && number < NSIG ? (int) number : 0;
        for (size_t i = 0; i < N_ELEMENTS(aliases); i++)
                if (strcasecmp(aliases[i].name, name) == 0)
                        return aliases[i].number;
        for (int signal = 1; signal < NSIG; signal++) {
                const char *known = sigabbrev_np(signal);

                if (known && strcasecmp(known, name) == 0)
                        return signal;
        }
        return realtime_from_name(name);
}

const char *signal_name(int signal, char buffer[SIGNAL_NAME_SIZE]) {
        const char *known = sigabbrev_np(signal);

        if (signal == SIGRTMIN || signal == SIGRTMAX)
                (void) snprintf(buffer, SIGNAL_NAME_SIZE, "SIGRT%s",
                                signal == SIGRTMIN ? "MIN" : "MAX");
        else if (signal > SIGRTMIN && signal < SIGRTMAX) {
                bool is_low = signal - SIGRTMIN <= REALTIME_OFFSET_MAX;

                (void) snprintf(buffer, SIGNAL_NAME_SIZE, "SIGRT%s%d", is_low ? "MIN+" : "MAX-",
                                is_low ? signal - SIGRTMIN : SIGRTMAX - signal);
        } else if (known)
                (void) snprintf(buffer, SIGNAL_NAME_SIZE, "SIG%s", known);
        else
                (void) snprintf(buffer, SIGNAL_NAME_SIZE, "SIG%d", signal);
        return buffer;
}

/* Kubernetes uses full names in capitals, and names half of the realtime signals relative to each
 * end of their range. */
int check_stop_signal(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];
        bool is_known = strncmp(value, "SIG", 3) == 0 && signal_from_name(value) > 0;

        for (const char *p = value; *p; p++)
                is_known = is_known && !(*p >= 'a' && *p <= 'z');
        if (is_known && strncmp(value, "SIGRT", 5) == 0) {
                bool is_max = value[6] == 'A';

                is_known = parse_offset(value + strlen("SIGRTMIN"), is_max ? '-' : '+',
                                        REALTIME_OFFSET_MAX - is_max) >= 0;
        }
        if (is_known)
                return 0;
        return error_setf(reterr, EINVAL, "must be the name of a signal such as SIGTERM, not '%s'",
                          excerpt(text, value));
}
