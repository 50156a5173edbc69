/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cgroup-io.h"

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
        IO_FILE_MAX = 64 * 1024
};

static char *read_text_file(const char *path) {
        cleanup_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -EBADF;
        char *text;

        return fd >= 0 && read_stream(fd, IO_FILE_MAX, &text, NULL) >= 0 ? text : NULL;
}

static char *read_io_file(const char *path, const char *controller, const char *file) {
        cleanup_free char *name = cgroup_file(path, controller, file);

        return read_text_file(name);
}

static const char *next_line(const char *line) {
        line = strchr(line, '\n');
        return line && line[1] ? line + 1 : NULL;
}

/* ---- pressure ---- */

void pressure_parse(const char *text, Pressure *ret) {
        *ret = (Pressure){ 0 };
        for (const char *line = text; line && *line; line = next_line(line)) {
                PressureShare share = { 0 };
                char kind[8];
                unsigned long long total;

                if (sscanf(line, "%7s avg10=%lf avg60=%lf avg300=%lf total=%llu", kind,
                           &share.avg10, &share.avg60, &share.avg300, &total) != 5)
                        continue;
                share.total_usec = total;
                if (streq(kind, "some")) {
                        ret->some = share;
                        ret->is_known = true;
                } else if (streq(kind, "full")) {
                        ret->full = share;
                }
        }
}

void cgroup_pressure(const char *path, const char *resource, Pressure *ret) {
        char name[64];
        cleanup_free char *text = NULL;

        if (streq(path, "/"))
                (void) snprintf(name, sizeof(name), "/proc/pressure/%s", resource);
        else
                (void) snprintf(name, sizeof(name), "%s.pressure", resource);
        if (streq(path, "/"))
                text = read_text_file(name);
        else if (cgroup_version() == 2)
                text = read_io_file(path, "", name);
        pressure_parse(text, ret);
}

/* ---- disks ---- */

/* NULL: there are too many. */
static DiskUsage *find_disk(DiskUsages *disks, unsigned major, unsigned minor) {
        for (size_t i = 0; i < disks->n; i++)
                if (disks->items[i].major == major && disks->items[i].minor == minor)
                        return &disks->items[i];
        if (disks->n >= DISK_USAGES_MAX)
                return NULL;
        disks->items[disks->n] = (DiskUsage){ .major = major, .minor = minor };
        return &disks->items[disks->n++];
}

static uint64_t find_io_number(const char *line, const char *key) {
        const char *end = line + strcspn(line, "\n"), *found = strstr(line, key);

        return found && found < end ? strtoull(found + strlen(key), NULL, 10) : 0;
}

void disk_usages_parse(const char *text, DiskUsages *ret) {
        ret->n = 0;
        for (const char *line = text; line && *line; line = next_line(line)) {
                unsigned major, minor;
                DiskUsage *disk;

                if (sscanf(line, "%u:%u ", &major, &minor) != 2)
                        continue;
                disk = find_disk(ret, major, minor);
                if (!disk)
                        return;
                disk->read_bytes = find_io_number(line, " rbytes=");
                disk->written_bytes = find_io_number(line, " wbytes=");
                disk->reads = find_io_number(line, " rios=");
                disk->writes = find_io_number(line, " wios=");
        }
}

static void parse_blkio_file(const char *text, bool is_bytes, DiskUsages *ret) {
        for (const char *line = text; line && *line; line = next_line(line)) {
                unsigned major, minor;
                unsigned long long value;
                char operation[16];
                bool is_read;
                DiskUsage *disk;

                if (sscanf(line, "%u:%u %15s %llu", &major, &minor, operation, &value) != 4)
                        continue;
                is_read = streq(operation, "Read");
                disk = is_read || streq(operation, "Write") ? find_disk(ret, major, minor) : NULL;
                if (!disk)
                        continue;
                if (is_bytes)
                        *(is_read ? &disk->read_bytes : &disk->written_bytes) = value;
                else
                        *(is_read ? &disk->reads : &disk->writes) = value;
        }
}

void disk_usages_parse_v1(const char *bytes, const char *operations, DiskUsages *ret) {
        ret->n = 0;
        parse_blkio_file(bytes, true, ret);
        parse_blkio_file(operations, false, ret);
}

void cgroup_disk_usages(const char *path, DiskUsages *ret) {
        cleanup_free char *text = NULL, *operations = NULL;

        if (cgroup_version() == 2) {
                text = read_io_file(path, "", "io.stat");
                disk_usages_parse(text, ret);
                return;
        }
        text = read_io_file(path, "blkio", "blkio.throttle.io_service_bytes_recursive");
        operations = read_io_file(path, "blkio", "blkio.throttle.io_serviced_recursive");
        disk_usages_parse_v1(text, operations, ret);
}

const char *disk_name(const DiskUsage *disk, char buffer[DISK_NAME_SIZE]) {
        char link[64], target[256], *slash;
        ssize_t n;

        (void) snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", disk->major, disk->minor);
        n = readlink(link, target, sizeof(target) - 1);
        target[MAX(n, 0)] = '\0';
        slash = strrchr(target, '/');
        if (!slash || snprintf(buffer, DISK_NAME_SIZE, "/dev/%s", slash + 1) >= DISK_NAME_SIZE)
                buffer[0] = '\0';
        return buffer;
}

DiskUsage disk_of_partition(const DiskUsage *partition) {
        cleanup_free char *text = NULL;
        DiskUsage disk = { 0 };
        char path[64];

        (void) snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", partition->major,
                        partition->minor);
        if (access(path, F_OK) < 0)
                return *partition;
        (void) snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", partition->major,
                        partition->minor);
        text = read_text_file(path);
        if (!text || sscanf(text, "%u:%u", &disk.major, &disk.minor) != 2)
                return *partition;
        return disk;
}
