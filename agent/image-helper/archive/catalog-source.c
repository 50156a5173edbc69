/* SPDX-License-Identifier: Apache-2.0 */

/* Reads documents and layers of an image from an archive. */

#include "agent/image-helper/pull/image-manifest.h"

static int read_archive_member(void *userdata, const CatalogBlob *blob, size_t max_bytes,
                               char **ret, size_t *ret_length, Error *reterr) {
        const Catalog *catalog = userdata;
        cleanup_free char *text = NULL;
        char digest[DIGEST_SIZE];
        size_t length;
        int r;

        r = image_archive_read(catalog->source, blob->member, max_bytes, &text, &length, reterr);
        if (r < 0)
                return r;
        digest_of(text, length, digest);
        if (!streq(digest, blob->digest))
                return error_setf(reterr, EBADMSG, "it is damaged: its digest is %s", digest);
        *ret = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}

static int check_archive_layer(void *userdata, const CatalogBlob *blob, Error *reterr) {
        const Catalog *catalog = userdata;

        if (image_archive_find(catalog->source, blob->member))
                return 0;
        return error_setf(reterr, ENOENT, "the archive does not contain layer %s", blob->digest);
}

/* A delta omits the layers of its base. If such a layer is now on top of other layers, it must be
 * unpacked again from its blob, which a store has if it pulled the layer. */
static int open_left_out_layer(Catalog *catalog, const CatalogBlob *blob, ByteStream **ret,
                               Error *reterr) {
        close_fd(catalog->blob_fd);
        catalog->blob_fd =
                catalog->store ? store_open_blob_to_read(catalog->store, blob->digest) : -ENOENT;
        if (catalog->blob_fd < 0)
                return error_setf(reterr, ENOENT, "is neither in the delta nor in the store");
        return byte_stream_new_blob(catalog->blob_fd, blob->size, -EBADF, ret);
}

static int open_archive_layer(void *userdata, size_t i, ByteStream **ret, Error *reterr) {
        Catalog *catalog = userdata;
        const CatalogBlob *blob = catalog_image_blob(catalog->chosen, i);
        const ArchiveMember *member = image_archive_find(catalog->source, blob->member);

        if (!member && catalog->chosen->delta)
                return open_left_out_layer(catalog, blob, ret, reterr);
        if (!member)
                return error_setf(reterr, ENOENT, "is not in the archive");
        return image_archive_stream(catalog->source, member, ret, reterr);
}

ImageProvider catalog_image_provider(Catalog *catalog) {
        return (ImageProvider){ .read = read_archive_member,
                                .check_layer = check_archive_layer,
                                .open_layer = open_archive_layer,
                                .userdata = catalog };
}
