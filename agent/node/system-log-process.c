/* SPDX-License-Identifier: Apache-2.0 */

/* A child answers a query, with the kubelet's order of precedence: for units in the journal with
 * journalctl, for other services from the file with the service's name. A directory listing, which
 * may be long, also comes from a child. The child ends when the reader is gone. */

#include "agent/node/system-log-process.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/forked-task.h"
#include "common/text.h"
#include "common/url-escape.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        CHILDREN_MAX = 8, /* at once */
        CHILD_SEC = 30,
        ENTRIES_MAX = 10000, /* maximum number of directory entries */
        ARGUMENTS_MAX = 16,
        SNIFF_BYTES = 512,
        FILE_NAMES = 3, /* number of possible file names of a service's log */
};

typedef struct ChildSlot {
        SystemLogs *logs;
        ForkedTask *task; /* NULL: this entry is unused */
} ChildSlot;

struct SystemLogs {
        SystemLogsConfig config;
        ChildSlot children[CHILDREN_MAX];
};

int system_logs_new(const SystemLogsConfig *config, SystemLogs **ret) {
        SystemLogs *logs = calloc(1, sizeof(*logs));

        if (!logs)
                return -ENOMEM;
        logs->config = *config;
        for (size_t i = 0; i < CHILDREN_MAX; i++)
                logs->children[i].logs = logs;
        *ret = logs;
        return 0;
}

SystemLogs *system_logs_free(SystemLogs *logs) {
        if (!logs)
                return NULL;
        for (size_t i = 0; i < CHILDREN_MAX; i++)
                forked_task_free(logs->children[i].task);
        free(logs);
        return NULL;
}

/* ---- files ---- */

/* A FIFO must not block the agent, and a device must not be triggered. */
static int open_log_path(const char *directory, const char *path, struct stat *ret_stat) {
        cleanup_close int root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int fd = -EBADF;

        if (root < 0)
                return -errno;
        fd = open_no_symlinks(root, path[0] ? path : ".", O_RDONLY | O_NOCTTY | O_NONBLOCK, 0);
        if (fd < 0)
                return fd;
        if (fstat(fd, ret_stat) < 0)
                return -errno;
        return S_ISREG(ret_stat->st_mode) || S_ISDIR(ret_stat->st_mode) ? TAKE_FD(fd) : -ENOENT;
}

static int compare_entries(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static void write_html(FILE *out, const char *text) {
        for (const char *c = text; *c; c++)
                switch (*c) {
                case '<':
                        fputs("&lt;", out);
                        break;
                case '>':
                        fputs("&gt;", out);
                        break;
                case '&':
                        fputs("&amp;", out);
                        break;
                case '"':
                        fputs("&#34;", out);
                        break;
                case '\'':
                        fputs("&#39;", out);
                        break;
                default:
                        fputc(*c, out);
                }
}

/* Directory names end with a slash. */
static int read_entries(DIR *directory, char **names, size_t *ret_n) {
        const struct dirent *entry;
        struct stat status;

        while (*ret_n < ENTRIES_MAX && (entry = readdir(directory))) {
                bool is_directory = fstatat(dirfd(directory), entry->d_name, &status,
                                            AT_SYMLINK_NOFOLLOW) >= 0 &&
                                    S_ISDIR(status.st_mode);

                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                names[*ret_n] = text_format("%s%s", entry->d_name, is_directory ? "/" : "");
                if (!names[*ret_n])
                        return -ENOMEM;
                (*ret_n)++;
        }
        return 0;
}

/* The format is that of Go's file server. */
static void write_listing(FILE *out, char *const *names, size_t n) {
        fputs("<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n",
              out);
        for (size_t i = 0; i < n; i++) {
                size_t length = strlen(names[i]);
                bool is_directory = names[i][length - 1] == '/';

                fputs("<a href=\"", out);
                if (is_directory)
                        names[i][length - 1] = '\0';
                url_write_escaped(out, names[i]);
                if (is_directory) {
                        fputc('/', out);
                        names[i][length - 1] = '/';
                }
                fputs("\">", out);
                write_html(out, names[i]);
                fputs("</a>\n", out);
        }
        fputs("</pre>\n", out);
}

/* Runs in a child, whose exit closes and frees everything. */
static int list_directory(int directory_fd, int output_fd) {
        DIR *directory = fdopendir(directory_fd);
        FILE *out = fdopen(output_fd, "we");
        char **names = calloc(ENTRIES_MAX, sizeof(*names));
        size_t n = 0;
        int r = directory && names && out ? read_entries(directory, names, &n) : -ENOMEM;

        if (r < 0)
                return r;
        qsort(names, n, sizeof(*names), compare_entries);
        write_listing(out, names, n);
        return fflush(out) == 0 ? 0 : -EIO;
}

static const char *guess_type(int fd) {
        char start[SNIFF_BYTES];
        ssize_t n = pread(fd, start, sizeof(start), 0);

        return n > 0 && memchr(start, '\0', (size_t) n) ? "application/octet-stream"
                                                        : "text/plain; charset=utf-8";
}

/* ---- in a child ---- */

static void prepare_log_child(void) {
        sigset_t none;

        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) signal(SIGPIPE, SIG_DFL);
        (void) alarm(CHILD_SEC);
}

typedef struct ListingWork {
        const char *directory, *path;
} ListingWork;

static int run_log_listing(int fd, const void *userdata) {
        const ListingWork *work = userdata;
        struct stat status = { 0 };
        int directory_fd;

        prepare_log_child();
        directory_fd = open_log_path(work->directory, work->path, &status);
        return directory_fd < 0 ? directory_fd : list_directory(directory_fd, fd);
}

typedef struct QueryWork {
        SystemLogQuery query;
        const char *directory;
} QueryWork;

typedef struct JournalArguments {
        const char *argv[ARGUMENTS_MAX + LOG_QUERY_UNITS_MAX];
        unsigned n;
        char since[48], until[48], lines[48], boot[48];
        char pattern[LOG_QUERY_PATTERN_LENGTH_MAX + 16];
        char units[LOG_QUERY_UNITS_MAX][LOG_QUERY_UNIT_LENGTH_MAX + 16];
} JournalArguments;

static void add_journalctl_argument(JournalArguments *arguments, const char *argument) {
        arguments->argv[arguments->n++] = argument;
}

static void print_journal_arguments(const SystemLogQuery *query, const bool *is_unit,
                                    JournalArguments *arguments) {
        add_journalctl_argument(arguments, "journalctl");
        add_journalctl_argument(arguments, "--utc");
        add_journalctl_argument(arguments, "--no-pager");
        add_journalctl_argument(arguments, "--output=short-precise");
        if (query->since_sec != 0) {
                (void) snprintf(arguments->since, sizeof(arguments->since), "--since=@%lld",
                                (long long) query->since_sec);
                add_journalctl_argument(arguments, arguments->since);
        }
        if (query->until_sec != 0) {
                (void) snprintf(arguments->until, sizeof(arguments->until), "--until=@%lld",
                                (long long) query->until_sec);
                add_journalctl_argument(arguments, arguments->until);
        }
        if (query->tail_lines >= 0) {
                (void) snprintf(arguments->lines, sizeof(arguments->lines), "--lines=%lld",
                                (long long) query->tail_lines);
                add_journalctl_argument(arguments, arguments->lines);
        }
        if (query->pattern) {
                (void) snprintf(arguments->pattern, sizeof(arguments->pattern), "--grep=%s",
                                query->pattern);
                add_journalctl_argument(arguments, arguments->pattern);
        }
        if (query->has_boot) {
                (void) snprintf(arguments->boot, sizeof(arguments->boot), "--boot=%lld",
                                (long long) query->boot);
                add_journalctl_argument(arguments, arguments->boot);
        }
        for (unsigned i = 0; i < query->n_units; i++) {
                if (!is_unit[i])
                        continue;
                (void) snprintf(arguments->units[i], sizeof(arguments->units[i]), "--unit=%s",
                                query->units[i]);
                add_journalctl_argument(arguments, arguments->units[i]);
        }
}

/* journalctl ends with this process. */
static void exec_journalctl(const char *const *argv, int output_fd) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || null < 0 || dup2(null, 0) < 0 ||
            dup2(output_fd, 1) < 0 || dup2(output_fd, 2) < 0)
                _exit(127);
        (void) execvp(argv[0], (char *const *) (uintptr_t) argv);
        _exit(127);
}

static pid_t start_journal(const char *const *argv, int output_fd) {
        pid_t pid = fork();

        if (pid == 0)
                exec_journalctl(argv, output_fd);
        return pid;
}

/* One name per line. */
static void mark_known_units(FILE *names, const SystemLogQuery *query, bool *is_unit) {
        char line[LOG_QUERY_UNIT_LENGTH_MAX + 16];

        while (fgets(line, sizeof(line), names)) {
                line[strcspn(line, "\n")] = '\0';
                for (unsigned i = 0; i < query->n_units; i++) {
                        size_t length = strlen(query->units[i]);

                        if (strncmp(line, query->units[i], length) == 0 &&
                            (line[length] == '\0' || streq(line + length, ".service")))
                                is_unit[i] = true;
                }
        }
}

static bool find_known_units(const SystemLogQuery *query, bool *is_unit) {
        static const char *const argv[] = { "journalctl", "--field=_SYSTEMD_UNIT", NULL };
        int fds[2];
        pid_t pid;
        FILE *names;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return false;
        pid = start_journal(argv, fds[1]);
        close_fd(fds[1]);
        names = fdopen(fds[0], "re");
        if (names) {
                mark_known_units(names, query, is_unit);
                (void) fclose(names);
        }
        if (pid > 0)
                (void) waitpid(pid, NULL, 0);
        for (unsigned i = 0; i < query->n_units; i++)
                if (is_unit[i])
                        return true;
        return false;
}

/* Waits until the child ends or the reader is gone. */
static void wait_while_read(pid_t pid, int fd) {
        cleanup_close int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        struct pollfd ends[] = { { .fd = pidfd, .events = POLLIN }, { .fd = fd } };

        (void) poll(ends, N_ELEMENTS(ends), -1);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
}

static void copy_journal(const SystemLogQuery *query, const bool *is_unit, int fd) {
        JournalArguments arguments = { 0 };
        pid_t pid;

        print_journal_arguments(query, is_unit, &arguments);
        pid = start_journal(arguments.argv, fd);
        if (pid > 0)
                wait_while_read(pid, fd);
}

/* The log file of a service has the name of the service, with or without ".log", or is in a
 * directory with that name. */
static void print_log_name(char *name, size_t size, const char *service, unsigned number) {
        if (number == 0)
                (void) snprintf(name, size, "%s", service);
        else if (number == 1)
                (void) snprintf(name, size, "%s.log", service);
        else
                (void) snprintf(name, size, "%s/%s.log", service, service);
}

static int copy_log_file(const char *directory, const char *service, int fd) {
        char name[2 * LOG_QUERY_UNIT_LENGTH_MAX + 16], block[16 * 1024];
        struct stat status = { 0 };

        for (unsigned i = 0; i < FILE_NAMES; i++) {
                cleanup_close int file = -EBADF;
                ssize_t n;

                print_log_name(name, sizeof(name), service, i);
                file = open_log_path(directory, name, &status);
                if (file < 0 || !S_ISREG(status.st_mode))
                        continue;
                while ((n = read(file, block, sizeof(block))) > 0)
                        if (write_all(fd, block, (size_t) n) < 0)
                                return -EPIPE;
                return 0;
        }
        return dprintf(fd, "\nlog not found for %s\n", service) < 0 ? -EPIPE : 0;
}

static bool has_options(const SystemLogQuery *query) {
        return query->since_sec != 0 || query->until_sec != 0 || query->tail_lines >= 0 ||
               query->pattern || query->has_boot;
}

static int copy_log_files(const QueryWork *work, const bool *is_unit, int fd) {
        const SystemLogQuery *query = &work->query;

        for (unsigned i = 0; i < query->n_units; i++) {
                int r = 0;

                if (is_unit[i])
                        continue;
                if (has_options(query))
                        r = dprintf(fd,
                                    "\noptions present and query resolved to log files for [%s]\n"
                                    "try without specifying options\n",
                                    query->units[i]);
                else
                        r = copy_log_file(work->directory, query->units[i], fd);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int run_log_query(int fd, const void *userdata) {
        const QueryWork *work = userdata;
        bool is_unit[LOG_QUERY_UNITS_MAX] = { false };

        prepare_log_child();
        if (find_known_units(&work->query, is_unit))
                copy_journal(&work->query, is_unit, fd);
        return copy_log_files(work, is_unit, fd);
}

/* ---- in the agent ---- */

static void on_log_child_done(int r, void *userdata) {
        ChildSlot *slot = userdata;

        slot->task = NULL;
}

static ChildSlot *find_free_slot(SystemLogs *logs) {
        for (size_t i = 0; i < CHILDREN_MAX; i++)
                if (!logs->children[i].task)
                        return &logs->children[i];
        return NULL;
}

/* The pipe that the child writes to. */
static int start_log_child(SystemLogs *logs, forked_task_run_t run, const void *work,
                           Error *reterr) {
        ChildSlot *slot = find_free_slot(logs);

        if (!slot)
                return error_setf(reterr, EAGAIN, "%d queries are running; try again later",
                                  CHILDREN_MAX);
        return forked_task_start_piped(logs->config.event, run, work, on_log_child_done, slot,
                                       &slot->task);
}

static int open_system_log_file(SystemLogs *logs, const char *path, const char **ret_type,
                                Error *reterr) {
        ListingWork work = { logs->config.directory, path };
        struct stat status = { 0 };
        cleanup_close int fd = open_log_path(logs->config.directory, path, &status);
        size_t length = strlen(path);

        if (fd < 0)
                return fd;
        if (S_ISREG(status.st_mode)) {
                *ret_type = guess_type(fd);
                return TAKE_FD(fd);
        }
        if (length > 0 && path[length - 1] != '/')
                return -EISDIR;
        *ret_type = "text/html; charset=utf-8";
        return start_log_child(logs, run_log_listing, &work, reterr);
}

int system_logs_open(SystemLogs *logs, const char *path, const SystemLogQuery *query,
                     const char **ret_type, Error *reterr) {
        QueryWork work = { .directory = logs->config.directory };

        if (!logs->config.is_enabled || (query && !logs->config.has_query))
                return error_setf(reterr, EPERM, "logs endpoint is disabled.");
        if (!query)
                return open_system_log_file(logs, path, ret_type, reterr);
        work.query = *query;
        *ret_type = "text/plain; charset=utf-8";
        return start_log_child(logs, run_log_query, &work, reterr);
}
