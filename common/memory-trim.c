/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory-trim.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
        STACK_BYTES = 112 * 1024, /* less than the stack limit of a program */
        FRAME_BYTES = 1024,       /* more than calls from here need */
};

static void trim_stack(uintptr_t frame) {
        uintptr_t page = (uintptr_t) getpagesize();
        uintptr_t end = (frame - FRAME_BYTES) / page * page;

        (void) madvise((void *) (end - STACK_BYTES), STACK_BYTES, MADV_DONTNEED);
}

/* Read-only pages equal the file, so nothing is lost. */
static void trim_loaded_segment(const struct dl_phdr_info *object, const ElfW(Phdr) * segment) {
        uintptr_t page = (uintptr_t) getpagesize();
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
        trim_stack((uintptr_t) __builtin_frame_address(0));
}
