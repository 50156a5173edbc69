/* SPDX-License-Identifier: Apache-2.0 */
/* Takes over a process: makes it execute system calls, with its credentials, namespaces, filters,
 * limits and descriptors.
 *
 *     system-calls PID
 *
 * Each line of the standard input is a call, "NUMBER ARGUMENT…". An argument is a number, "=TEXT"
 * (the address of a string), "#HEX" (of bytes), or "@N" (of N bytes, which the reply contains). The
 * reply is "RESULT HEX": the result of the kernel, and the bytes. At the end of the input the
 * process continues as if nothing had happened. */

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define RESULT(regs) ((long) (regs).rax)
#define STACK(regs)  ((regs).rsp)
#define CODE(regs)   ((regs).rip)
static const unsigned char call_code[] = { 0x0f, 0x05, 0xcc };

static void set_call(struct user_regs_struct *regs, const unsigned long words[7]) {
        regs->rax = words[0];
        regs->orig_rax = (unsigned long) -1;
        regs->rdi = words[1];
        regs->rsi = words[2];
        regs->rdx = words[3];
        regs->r10 = words[4];
        regs->r8 = words[5];
        regs->r9 = words[6];
}
#elif defined(__i386__)
#define RESULT(regs) ((regs).eax)
#define STACK(regs)  ((regs).esp)
#define CODE(regs)   ((regs).eip)
static const unsigned char call_code[] = { 0xcd, 0x80, 0xcc };

static void set_call(struct user_regs_struct *regs, const unsigned long words[7]) {
        regs->eax = (long) words[0];
        regs->orig_eax = -1;
        regs->ebx = (long) words[1];
        regs->ecx = (long) words[2];
        regs->edx = (long) words[3];
        regs->esi = (long) words[4];
        regs->edi = (long) words[5];
        regs->ebp = (long) words[6];
}
#else
#error "how a call is made on this architecture is not known"
#endif

enum {
        SCRATCH_BELOW = 2048, /* of the stack pointer: nothing is there yet */
        SCRATCH_SIZE = 1536,
};

static pid_t victim;
static struct user_regs_struct before;
static unsigned long code_before;

static void fail(const char *what) {
        (void) fprintf(stderr, "system-calls: %s: %s\n", what, strerror(errno));
        exit(EXIT_FAILURE);
}

/* The signal. */
static int wait_for_stop(void) {
        int status;

        if (waitpid(victim, &status, __WALL) != victim || !WIFSTOPPED(status)) {
                (void) printf("gone\n");
                exit(EXIT_SUCCESS);
        }
        return WSTOPSIG(status);
}

static void attach(void) {
        unsigned long code;

        if (ptrace(PTRACE_ATTACH, victim, NULL, NULL) < 0)
                fail("cannot attach");
        (void) wait_for_stop();
        if (ptrace(PTRACE_GETREGS, victim, NULL, &before) < 0)
                fail("cannot read the registers");
        errno = 0;
        code_before = (unsigned long) ptrace(PTRACE_PEEKTEXT, victim, (void *) CODE(before), NULL);
        code = code_before;
        memcpy(&code, call_code, sizeof(call_code));
        if (errno != 0 || ptrace(PTRACE_POKETEXT, victim, (void *) CODE(before), (void *) code) < 0)
                fail("cannot write the code");
}

static void detach(void) {
        (void) ptrace(PTRACE_POKETEXT, victim, (void *) CODE(before), (void *) code_before);
        (void) ptrace(PTRACE_SETREGS, victim, NULL, &before);
        (void) ptrace(PTRACE_DETACH, victim, NULL, NULL);
}

static void copy_scratch(void *data, size_t length, unsigned long address, int is_write) {
        struct iovec ours = { data, length }, theirs = { (void *) address, length };
        ssize_t n = is_write ? process_vm_writev(victim, &ours, 1, &theirs, 1, 0)
                             : process_vm_readv(victim, &ours, 1, &theirs, 1, 0);

        if (n != (ssize_t) length)
                fail("cannot reach its memory");
}

static long execute(const unsigned long words[7]) {
        struct user_regs_struct regs = before;

        set_call(&regs, words);
        if (ptrace(PTRACE_SETREGS, victim, NULL, &regs) < 0)
                fail("cannot execute");
        do /* a signal that comes before the call has no effect */
                if (ptrace(PTRACE_SINGLESTEP, victim, NULL, NULL) < 0)
                        fail("cannot execute");
        while (wait_for_stop() != SIGTRAP);
        if (ptrace(PTRACE_GETREGS, victim, NULL, &regs) < 0)
                fail("cannot read the result");
        return RESULT(regs);
}

static size_t decode_hex(const char *hex, unsigned char *bytes) {
        size_t n = 0;

        for (unsigned byte; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
                bytes[n] = (unsigned char) byte;
        return n;
}

static void execute_line(char *line) {
        unsigned long words[7] = { 0 }, next = STACK(before) - SCRATCH_BELOW, bytes = 0;
        unsigned char output[SCRATCH_SIZE], input[SCRATCH_SIZE];
        size_t n_bytes = 0, n = 0;
        char *rest = line, *word;

        while ((word = strsep(&rest, " ")) && n < 7) {
                if (word[0] == '=') {
                        copy_scratch(word + 1, strlen(word), next, 1);
                        words[n++] = next;
                        next += (strlen(word) + 15) / 16 * 16;
                } else if (word[0] == '#') {
                        size_t length = decode_hex(word + 1, input);

                        copy_scratch(input, length, next, 1);
                        words[n++] = next;
                        next += (length + 15) / 16 * 16;
                } else if (word[0] == '@') {
                        n_bytes = strtoul(word + 1, NULL, 0);
                        bytes = words[n++] = next;
                        next += (n_bytes + 15) / 16 * 16;
                } else
                        words[n++] = (unsigned long) strtoll(word, NULL, 0);
        }
        (void) printf("%ld ", execute(words));
        if (n_bytes > 0 && n_bytes <= sizeof(output))
                copy_scratch(output, n_bytes, bytes, 0);
        for (size_t i = 0; i < n_bytes && i < sizeof(output); i++)
                (void) printf("%02x", output[i]);
        (void) printf("\n");
        (void) fflush(stdout);
}

int main(int argc, char **argv) {
        char line[SCRATCH_SIZE];

        victim = argc > 1 ? (pid_t) strtol(argv[1], NULL, 10) : 0;
        attach();
        (void) printf("attached\n");
        (void) fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                line[strcspn(line, "\n")] = '\0';
                execute_line(line);
        }
        detach();
        return EXIT_SUCCESS;
}
