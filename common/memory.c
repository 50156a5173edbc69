/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

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
