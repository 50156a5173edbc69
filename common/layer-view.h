/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A stack of layer directories as a container sees it, queried one path at a time: implements
 * overlayfs' rules for whiteouts and opaque directories without a mount. */

#include "common/error.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>

#define XATTR_OPAQUE "trusted.overlay.opaque"

/* For layers that other processes are still unpacking: 'wait' is called before their first use. */
typedef struct LayerViewGate {
        int (*wait)(struct LayerViewGate *gate); /* 0 when all of them are complete, or -errno */
        bool is_open;
} LayerViewGate;

typedef struct LayerView {
        const int *layers; /* directories, topmost first; borrowed */
        size_t n_layers;
        LayerViewGate
                *gate; /* for all but the first 'n_before'; NULL: all are complete. Borrowed. */
        size_t n_before;
        _Atomic int64_t *lookups; /* number of look-ups left for all layers of the image together;
                                     NULL: unlimited. Borrowed. */
} LayerView;

/* The open directories of a stack of layers, for a view; initially { 0 }. */
typedef struct LayerDirectories {
        int *fds;
        size_t n;
} LayerDirectories;

/* Opens all layers. 0 or -errno; layers[ret->n] is the one that cannot be opened. The caller must
 * call layer_directories_done() in both cases. */
int layer_directories_open(char *const *layers, LayerDirectories *ret);
void layer_directories_done(LayerDirectories *directories);

/* Waits until layer 'i' is complete. 0 or -errno. */
int layer_view_await(const LayerView *view, size_t i);

/* Looks up a relative path without symbolic links in it (the last component may be one); "" is the
 * top. Returns the number of the layer that contains it, -ENOENT, -ELOOP if no look-ups are left,
 * or another -errno. */
int layer_view_find(const LayerView *view, const char *path, struct stat *ret);

/* Opens the file that layer_view_find() finds, with O_NOFOLLOW. Returns a descriptor or -errno. */
int layer_view_open(const LayerView *view, const char *path, int flags);

/* Opens the file that layer 'i' alone has at a path, without following any links. Returns a
 * descriptor; -ENOENT if the layer does not have a component of the path; another -errno if a
 * parent is a link or not a directory, or no look-ups are left. */
int layer_view_open_in(const LayerView *view, size_t i, const char *path, int flags);

/* Reads a symbolic link that layer_view_find() found in layer 'i'. 0 or -errno. */
int layer_view_readlink(const LayerView *view, int i, const char *path, char *buffer, size_t size);

/* Resolves the links in a path: the result contains none, not even as last component, and ".." at
 * the top stays there. Missing components are kept. 0, -ENOTDIR with a message if a parent is a
 * file, -ELOOP (too many links or, with a message, no look-ups left), -ENAMETOOLONG. */
int layer_view_resolve(const LayerView *view, const char *path, char ret[static PATH_MAX],
                       Error *reterr);

/* The same for a path that may refer to a file. */
int layer_view_resolve_file(const LayerView *view, const char *path, char ret[static PATH_MAX]);

/* Opens a path below a directory without following any links, not even as last component. Like
 * open(2), but returns -errno. */
int open_without_symlinks(int dir_fd, const char *path, int flags);

/* Whether the file is a whiteout of overlayfs, which is a character device 0:0. */
bool stat_is_whiteout(const struct stat *st);
bool directory_is_opaque(int fd);
