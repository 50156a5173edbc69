/* SPDX-License-Identifier: Apache-2.0 */

/* Documents and layers, had from an archive. */

#include "agent/fetch/manifest.h"

static int read_member(void *userdata, const CatalogBlob *blob, size_t max_bytes, char **ret,
                       size_t *ret_length, Error *reterr) {
        const Catalog *catalog = userdata;
        cleanup_free char *text = NULL;
        char digest[DIGEST_SIZE];
        size_t length;
        int r;

        r = source_read(catalog->source, blob->member, max_bytes, &text, &length, reterr);
        if (r < 0)
                return r;
        digest_of(text, length, digest);
        if (!streq(digest, blob->digest))
                return error_setf(reterr, EBADMSG, "it is damaged: its digest is %s", digest);
        *ret = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}

static int check_layer(void *userdata, const CatalogBlob *blob, Error *reterr) {
        const Catalog *catalog = userdata;

        if (source_find(catalog->source, blob->member))
                return 0;
        return error_setf(reterr, ENOENT, "the archive lacks its layer %s", blob->digest);
}

static int open_layer(void *userdata, size_t i, Stream **ret, Error *reterr) {
        const Catalog *catalog = userdata;
        const Member *member = source_find(catalog->source, catalog->chosen->layers[i].member);

        if (!member)
                return error_setf(reterr, ENOENT, "is not in the archive");
        return source_stream(catalog->source, member, ret, reterr);
}

ImageSource catalog_image_source(Catalog *catalog) {
        return (ImageSource){ .read = read_member,
                              .check_layer = check_layer,
                              .open_layer = open_layer,
                              .userdata = catalog };
}
