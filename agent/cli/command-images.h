/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The subcommands of images. Each returns an exit status, and prints errors. */

#include "agent/cli/cli.h"

#include <stdint.h>

/* get-images.c */
int print_images(const Options *options, const char *format);

/* "12.3MiB". Returns the buffer. */
char *format_bytes(char buffer[static 32], uint64_t bytes);

/* images-files.c; 'names' are the arguments after the subcommand. */
int images_import(const Options *options, char *const *names, size_t n);
int images_diff(const Options *options, char *const *names, size_t n);
int images_export(const Options *options, char *const *names, size_t n);
int images_repair(const Options *options, char *const *names, size_t n);
int images_verify(const Options *options, char *const *names, size_t n);
