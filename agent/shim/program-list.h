/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The list of programs that container-exec.c runs, a member of the sandbox state. */

typedef struct Program Program;

typedef struct ProgramList {
        Program *first; /* running and waiting, in the order of the requests */
} ProgramList;
