/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/masked-paths.h"

#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

#include <dirent.h>
#include <unistd.h>

static const char *const masked_paths[] = {
        "/proc/asound",
        "/proc/acpi",
        "/proc/kcore",
        "/proc/keys",
        "/proc/latency_stats",
        "/proc/timer_list",
        "/proc/timer_stats",
        "/proc/sched_debug",
        "/proc/scsi",
        "/sys/firmware",
        "/sys/devices/virtual/powercap",
        "/proc/interrupts",
};

static const char *const readonly_paths[] = {
        "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
};

/* "cpu12", and not "cpufreq". */
static bool is_cpu_name(const char *name) {
        return strncmp(name, "cpu", 3) == 0 && name[3] &&
               name[3 + strspn(name + 3, "0123456789")] == '\0';
}

static int append_thermal_throttle(char ***paths, const char *directory, const char *cpu) {
        cleanup_free char *path = text_format("%s/%s/thermal_throttle", directory, cpu);

        if (!path)
                return -ENOMEM;
        return access(path, F_OK) < 0 ? 0 : strv_append(paths, path);
}

static int compare_versions(const void *a, const void *b) {
        return strverscmp(*(char *const *) a, *(char *const *) b);
}

int find_thermal_throttles(const char *directory, char ***ret) {
        cleanup_closedir DIR *dir = opendir(directory);
        cleanup_strv char **paths = NULL;
        struct dirent *entry;
        int r = 0;

        while (r >= 0 && dir && (entry = readdir(dir)))
                if (is_cpu_name(entry->d_name))
                        r = append_thermal_throttle(&paths, directory, entry->d_name);
        if (r < 0)
                return r;
        if (paths)
                qsort(paths, strv_length(paths), sizeof(*paths), compare_versions);
        *ret = TAKE_PTR(paths);
        return 0;
}

static json_t *path_array(const char *const *paths, size_t n) {
        json_t *array = json_array();

        for (size_t i = 0; i < n; i++)
                json_array_append_new(array, json_string(paths[i]));
        return array;
}

json_t *masked_paths_section(const BundleConfig *config) {
        json_t *array = path_array(masked_paths, N_ELEMENTS(masked_paths));

        strv_foreach(path, (char **) (uintptr_t) config->thermal_throttles)
                json_array_append_new(array, json_string(*path));
        return array;
}

json_t *readonly_paths_section(void) {
        return path_array(readonly_paths, N_ELEMENTS(readonly_paths));
}
