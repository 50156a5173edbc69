/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/device-filter.h"

#include "common/cleanup.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
        INSTRUCTIONS_OF_RULE = 8,
        INSTRUCTIONS_BEFORE = 6,
        INSTRUCTIONS_AFTER = 2,
        PROGRAMS_MAX = 64,
        /* Registers: the context, the requested access, and a copy of it. */
        CONTEXT = BPF_REG_1,
        COPY = BPF_REG_1,
        ACCESS = BPF_REG_2,
        TYPE = BPF_REG_3,
        MAJOR = BPF_REG_4,
        MINOR = BPF_REG_5,
};

typedef struct bpf_insn Instruction;

typedef struct DeviceProgram {
        Instruction *items;
        size_t n;
} DeviceProgram;

/* ---- the program ---- */

static void emit(DeviceProgram *program, unsigned code, unsigned to, unsigned from, int offset,
                 int value) {
        program->items[program->n++] = (Instruction){ .code = (uint8_t) code,
                                                      .dst_reg = to & 0xf,
                                                      .src_reg = from & 0xf,
                                                      .off = (int16_t) offset,
                                                      .imm = value };
}

static void emit_load(DeviceProgram *program, unsigned to, size_t offset) {
        emit(program, BPF_LDX | BPF_MEM | BPF_W, to, CONTEXT, (int) offset, 0);
}

static void emit_number(DeviceProgram *program, unsigned to, int value) {
        emit(program, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}

/* Skips the rest of the rule, whose end is filled in later. */
static void emit_unless_equal(DeviceProgram *program, unsigned reg, int value) {
        emit(program, BPF_JMP | BPF_JNE | BPF_K, reg, 0, -1, value);
}

static void emit_rule(DeviceProgram *program, const DeviceRule *rule) {
        size_t begin = program->n;

        if (rule->type != 'a')
                emit_unless_equal(program, TYPE,
                                  rule->type == 'c' ? BPF_DEVCG_DEV_CHAR : BPF_DEVCG_DEV_BLOCK);
        if (rule->access != DEVICE_ALL) {
                /* Checks that the request asks for no access that the rule does not permit. */
                emit(program, BPF_ALU64 | BPF_MOV | BPF_X, COPY, ACCESS, 0, 0);
                emit(program, BPF_ALU64 | BPF_AND | BPF_K, COPY, 0, 0,
                     (int) (~rule->access & DEVICE_ALL));
                emit_unless_equal(program, COPY, 0);
        }
        if (rule->major >= 0)
                emit_unless_equal(program, MAJOR, (int) rule->major);
        if (rule->minor >= 0)
                emit_unless_equal(program, MINOR, (int) rule->minor);
        emit_number(program, BPF_REG_0, rule->is_allowed);
        emit(program, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
        for (size_t i = begin; i < program->n; i++)
                if (program->items[i].off == -1)
                        program->items[i].off = (int16_t) (program->n - i - 1);
}

/* The verifier refuses unreachable instructions. */
static bool concerns_all(const DeviceRule *rule) {
        return rule->type == 'a' && rule->access == DEVICE_ALL && rule->major < 0 &&
               rule->minor < 0;
}

static int make_program(const DeviceRules *rules, DeviceProgram *ret) {
        bool is_decided = false;

        ret->n = 0;
        ret->items =
                calloc(INSTRUCTIONS_BEFORE + INSTRUCTIONS_AFTER + rules->n * INSTRUCTIONS_OF_RULE,
                       sizeof(Instruction));
        if (!ret->items)
                return -ENOMEM;
        emit_load(ret, ACCESS, offsetof(struct bpf_cgroup_dev_ctx, access_type));
        emit_load(ret, MAJOR, offsetof(struct bpf_cgroup_dev_ctx, major));
        emit_load(ret, MINOR, offsetof(struct bpf_cgroup_dev_ctx, minor));
        emit(ret, BPF_ALU64 | BPF_MOV | BPF_X, TYPE, ACCESS, 0, 0);
        emit(ret, BPF_ALU64 | BPF_AND | BPF_K, TYPE, 0, 0, 0xffff);
        emit(ret, BPF_ALU64 | BPF_RSH | BPF_K, ACCESS, 0, 0, 16);
        for (size_t i = rules->n; i-- > 0 && !is_decided;) {
                emit_rule(ret, &rules->items[i]);
                is_decided = concerns_all(&rules->items[i]);
        }
        if (is_decided)
                return 0;
        emit_number(ret, BPF_REG_0, 0);
        emit(ret, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
        return 0;
}

/* ---- bpf(2) ---- */

static int call_bpf(int command, union bpf_attr *attributes) {
        long r = syscall(SYS_bpf, command, attributes, sizeof(*attributes));

        return r < 0 ? -errno : (int) r;
}

/* Kernels before 5.11 count programs as locked memory. */
static void raise_locked_memory(void) {
        static const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

        (void) setrlimit(RLIMIT_MEMLOCK, &unlimited);
}

static int load_program(const DeviceProgram *program) {
        static const char license[] = "Apache-2.0";
        union bpf_attr attributes = { 0 };
        int r;

        attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
        attributes.insns = (uint64_t) (uintptr_t) program->items;
        attributes.insn_cnt = (uint32_t) program->n;
        attributes.license = (uint64_t) (uintptr_t) license;
        r = call_bpf(BPF_PROG_LOAD, &attributes);
        if (r != -EPERM)
                return r;
        raise_locked_memory();
        return call_bpf(BPF_PROG_LOAD, &attributes);
}

static int attach_program(int cgroup_fd, int program_fd) {
        union bpf_attr attributes = { 0 };

        attributes.target_fd = (uint32_t) cgroup_fd;
        attributes.attach_bpf_fd = (uint32_t) program_fd;
        attributes.attach_type = BPF_CGROUP_DEVICE;
        attributes.attach_flags = BPF_F_ALLOW_MULTI;
        return call_bpf(BPF_PROG_ATTACH, &attributes);
}

/* Lists the programs that are attached directly to the cgroup. */
static int list_programs(int cgroup_fd, uint32_t ids[PROGRAMS_MAX], size_t *ret_n) {
        union bpf_attr attributes = { 0 };
        int r;

        attributes.query.target_fd = (uint32_t) cgroup_fd;
        attributes.query.attach_type = BPF_CGROUP_DEVICE;
        attributes.query.prog_ids = (uint64_t) (uintptr_t) ids;
        attributes.query.prog_cnt = PROGRAMS_MAX;
        r = call_bpf(BPF_PROG_QUERY, &attributes);
        if (r >= 0)
                *ret_n = attributes.query.prog_cnt;
        return r;
}

static int detach_program(int cgroup_fd, uint32_t id) {
        union bpf_attr attributes = { 0 };
        cleanup_close int fd = -EBADF;

        attributes.prog_id = id;
        fd = call_bpf(BPF_PROG_GET_FD_BY_ID, &attributes);
        if (fd < 0)
                return fd;
        attributes = (union bpf_attr){ 0 };
        attributes.target_fd = (uint32_t) cgroup_fd;
        attributes.attach_bpf_fd = (uint32_t) fd;
        attributes.attach_type = BPF_CGROUP_DEVICE;
        return call_bpf(BPF_PROG_DETACH, &attributes);
}

static int replace_programs(int cgroup_fd, const DeviceProgram *program, const uint32_t *ids,
                            size_t n) {
        cleanup_close int fd = load_program(program);
        int r = fd < 0 ? fd : attach_program(cgroup_fd, fd);

        for (size_t i = 0; i < n && r >= 0; i++)
                r = detach_program(cgroup_fd, ids[i]);
        return r;
}

int device_filter_replace(const char *cgroup_path, const DeviceRules *rules, Error *reterr) {
        cleanup_close int fd = open(cgroup_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DeviceProgram program = { 0 };
        uint32_t ids[PROGRAMS_MAX];
        size_t n = 0;
        int r;

        if (fd < 0)
                return error_setf(reterr, errno, "cannot open the cgroup %s: %s", cgroup_path,
                                  strerror(errno));
        r = list_programs(fd, ids, &n);
        if (r >= 0 && n == 0)
                return 0;
        if (r >= 0)
                r = make_program(rules, &program);
        if (r >= 0)
                r = replace_programs(fd, &program, ids, n);
        free(program.items);
        return r < 0 ? error_setf(reterr, -r,
                                  "cannot replace the device program of the cgroup %s: %s",
                                  cgroup_path, strerror(-r))
                     : 0;
}
