/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory-trim.h"

#include "common/clock.h"
#include "common/event-source.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
        BURST_USEC = 2000000,
        PAUSE_USEC = 150000,
        ACCURACY_USEC = 100000,
};

/* Read-only pages are as in the file, so nothing is lost. */
static void trim_loaded_segment(const struct dl_phdr_info *object, const ElfW(Phdr) * segment) {
        uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        uintptr_t end = start + segment->p_memsz;

        start &= ~(page - 1);
        (void) madvise((void *) start, end - start, MADV_DONTNEED);
}

static int trim_loaded_object(struct dl_phdr_info *object, size_t size, void *userdata) {
        for (size_t i = 0; i < object->dlpi_phnum; i++)
                if (object->dlpi_phdr[i].p_type == PT_LOAD &&
                    !(object->dlpi_phdr[i].p_flags & PF_W))
                        trim_loaded_segment(object, &object->dlpi_phdr[i]);
        return 0;
}

void memory_trim(void) {
        (void) malloc_trim(0);
        (void) dl_iterate_phdr(trim_loaded_object, NULL);
}

static int on_memory_trim_timer(sd_event_source *timer, uint64_t usec, void *userdata) {
        memory_trim();
        return 0;
}

int memory_trim_timer_new(sd_event *event, sd_event_source **ret) {
        return event_add_disabled_timer(event, ret, CLOCK_BOOTTIME, ACCURACY_USEC,
                                        on_memory_trim_timer, NULL);
}

void memory_trim_timer_schedule(sd_event_source *timer) {
        if (sd_event_source_get_enabled(timer, NULL) == 0)
                (void) event_timer_arm(timer, BURST_USEC);
}

void memory_trim_timer_restart(sd_event_source *timer) {
        (void) event_timer_arm(timer, PAUSE_USEC);
}
