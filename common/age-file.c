/* SPDX-License-Identifier: Apache-2.0 */
#include "common/age-file.h"

#include "common/base64.h"
#include "common/bech32.h"
#include "common/buffer.h"
#include "common/chacha.h"
#include "common/cleanup.h"

#include <ctype.h>
#include <nettle/curve25519.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>

#define VERSION_LINE     "age-encryption.org/v1\n"
#define STANZA_PREFIX    "-> "
#define MAC_PREFIX       "---"
#define X25519_ARGUMENT  "X25519 "
#define X25519_INFO      "age-encryption.org/v1/X25519"
#define RECIPIENT_PREFIX "age"
#define IDENTITY_PREFIX  "age-secret-key-"

enum {
        LINE_COLUMNS = 64,
        FILE_KEY_SIZE = 16,
        TAG_SIZE = CHACHA_TAG_SIZE,
        WRAPPED_SIZE = FILE_KEY_SIZE + TAG_SIZE,
        MAC_SIZE = SHA256_DIGEST_SIZE,
        PAYLOAD_NONCE_SIZE = 16,
        CHUNK_SIZE = 64 * 1024,
        COUNTER_SIZE = CHACHA_NONCE_SIZE - 1,
        BYTE_BITS = 8,
        BYTE_MASK = 255,
        DIGITS_OF_32_BYTES = 43 /* without padding */
};

typedef struct AgeStanza {
        uint8_t share[AGE_KEY_SIZE]; /* the ephemeral public key */
        uint8_t body[WRAPPED_SIZE];
} AgeStanza;

typedef struct AgeHeader {
        AgeStanza *stanzas; /* stanzas for X25519 */
        size_t n_stanzas;
        const char *text;
        size_t mac_length; /* length of the text that the MAC covers */
        uint8_t mac[MAC_SIZE];
        size_t length; /* including the MAC line */
} AgeHeader;

static void age_header_done(AgeHeader *header) {
        free(header->stanzas);
}

/* ---- keys ---- */

int age_recipient_parse(const char *text, AgeKey *ret) {
        return bech32_decode(text, RECIPIENT_PREFIX, ret->bytes, sizeof(ret->bytes));
}

void age_recipient_format(const AgeKey *recipient, char ret[AGE_RECIPIENT_SIZE]) {
        bech32_encode(RECIPIENT_PREFIX, recipient->bytes, sizeof(recipient->bytes), ret);
}

int age_identity_parse(const char *text, AgeKey *ret) {
        return bech32_decode(text, IDENTITY_PREFIX, ret->bytes, sizeof(ret->bytes));
}

void age_identity_format(const AgeKey *identity, char ret[AGE_IDENTITY_SIZE]) {
        bech32_encode(IDENTITY_PREFIX, identity->bytes, sizeof(identity->bytes), ret);
        for (char *p = ret; *p; p++)
                *p = (char) toupper((unsigned char) *p);
}

int age_identity_make(AgeKey *ret) {
        return fill_with_random(ret->bytes, sizeof(ret->bytes));
}

void age_identity_recipient(const AgeKey *identity, AgeKey *ret) {
        curve25519_mul_g(ret->bytes, identity->bytes);
}

/* The key that wraps the file key for one recipient; false for a point of small order. */
static bool derive_wrapping_key(const uint8_t *scalar, const uint8_t *point, const uint8_t *share,
                                const uint8_t *recipient, uint8_t ret[CHACHA_KEY_SIZE]) {
        static const uint8_t zero[AGE_KEY_SIZE];
        uint8_t shared[AGE_KEY_SIZE], salt[2 * AGE_KEY_SIZE];
        bool is_usable;

        curve25519_mul(shared, scalar, point);
        is_usable = !memeql_sec(shared, zero, sizeof(zero));
        memcpy(salt, share, AGE_KEY_SIZE);
        memcpy(salt + AGE_KEY_SIZE, recipient, AGE_KEY_SIZE);
        chacha_derive_key(shared, sizeof(shared), salt, sizeof(salt), X25519_INFO, ret);
        explicit_bzero(shared, sizeof(shared));
        return is_usable;
}

static void compute_mac(const uint8_t file_key[FILE_KEY_SIZE], const char *text, size_t length,
                        uint8_t ret[MAC_SIZE]) {
        uint8_t key[CHACHA_KEY_SIZE];
        struct hmac_sha256_ctx context;

        chacha_derive_key(file_key, FILE_KEY_SIZE, NULL, 0, "header", key);
        hmac_sha256_set_key(&context, sizeof(key), key);
        hmac_sha256_update(&context, length, (const uint8_t *) text);
        hmac_sha256_digest(&context, MAC_SIZE, ret);
        explicit_bzero(key, sizeof(key));
        explicit_bzero(&context, sizeof(context));
}

static void seal_bytes(const uint8_t *key, const uint8_t *nonce, const uint8_t *data, size_t length,
                       uint8_t *ret) {
        chacha_encrypt(&(ChachaBox){ .key = key, .nonce = nonce }, data, length, ret);
}

static bool open_bytes(const uint8_t *key, const uint8_t *nonce, const uint8_t *data, size_t length,
                       uint8_t *ret) {
        return chacha_decrypt(&(ChachaBox){ .key = key, .nonce = nonce }, data, length, ret);
}

/* ---- the header ---- */

static int damaged_header(Error *reterr, const char *cause) {
        return error_setf(reterr, EBADMSG, "is not a file of age that can be read: %s", cause);
}

/* Decodes a line of unpadded base64, which must be the canonical encoding of exactly 'size' bytes.
 */
static int decode_line(const char *line, size_t length, uint8_t *ret, size_t size) {
        char copy[LINE_COLUMNS + 1], again[LINE_COLUMNS * 2];
        cleanup_free char *data = NULL;
        size_t n;
        int r;

        if (length > LINE_COLUMNS || memchr(line, '=', length) || memchr(line, '\0', length) ||
            memchr(line, '\r', length))
                return -EINVAL;
        memcpy(copy, line, length);
        copy[length] = '\0';
        r = base64_decode_unpadded(copy, &data, &n);
        if (r < 0)
                return r;
        if (n != size)
                return -EINVAL;
        base64_encode(data, n, again);
        if (strncmp(again, copy, length) != 0)
                return -EINVAL;
        memcpy(ret, data, size);
        return 0;
}

/* The next line, without its newline; NULL: the header has ended. */
static const char *next_header_line(const char **text, const char *end, size_t *ret_length) {
        const char *line = *text, *newline = memchr(line, '\n', (size_t) (end - line));

        if (!newline)
                return NULL;
        *ret_length = (size_t) (newline - line);
        *text = newline + 1;
        return line;
}

/* Stanzas of other types, such as passwords and plugins, are skipped. */
static int read_stanza(AgeHeader *header, const char *line, size_t length, const char **text,
                       const char *end, Error *reterr) {
        const size_t argument = strlen(X25519_ARGUMENT);
        bool is_ours = length >= argument && memcmp(line, X25519_ARGUMENT, argument) == 0;
        AgeStanza stanza = { 0 };
        const char *body;
        size_t n;

        if (is_ours &&
            decode_line(line + argument, length - argument, stanza.share, sizeof(stanza.share)) < 0)
                return damaged_header(reterr, "the share of an X25519 recipient");
        body = next_header_line(text, end, &n);
        if (is_ours && (!body || decode_line(body, n, stanza.body, sizeof(stanza.body)) < 0))
                return damaged_header(reterr, "the key of an X25519 recipient");
        while (body && n == LINE_COLUMNS)
                body = next_header_line(text, end, &n);
        if (!body || n > LINE_COLUMNS)
                return damaged_header(reterr, "a recipient does not end");
        if (is_ours && header->n_stanzas == AGE_RECIPIENTS_MAX)
                return error_setf(reterr, EBADMSG, "has more than %d recipients",
                                  AGE_RECIPIENTS_MAX);
        if (is_ours)
                header->stanzas[header->n_stanzas++] = stanza;
        return 0;
}

static int read_mac(AgeHeader *header, const char *line, size_t length, Error *reterr) {
        const size_t prefix = strlen(MAC_PREFIX " ");

        if (length != prefix + DIGITS_OF_32_BYTES || line[strlen(MAC_PREFIX)] != ' ' ||
            decode_line(line + prefix, length - prefix, header->mac, MAC_SIZE) < 0)
                return damaged_header(reterr, "the code of the header");
        header->mac_length = (size_t) (line - header->text) + strlen(MAC_PREFIX);
        return 0;
}

static int read_header(const char *data, size_t length, AgeHeader *header, Error *reterr) {
        const char *end = data + MIN(length, (size_t) AGE_HEADER_MAX), *text = data, *line;
        const size_t version = strlen(VERSION_LINE), stanza = strlen(STANZA_PREFIX),
                     mac = strlen(MAC_PREFIX);
        size_t n;
        int r;

        header->stanzas = calloc(AGE_RECIPIENTS_MAX, sizeof(*header->stanzas));
        if (!header->stanzas)
                return -ENOMEM;
        header->text = data;
        if (length < version || memcmp(data, VERSION_LINE, version) != 0)
                return damaged_header(reterr, "it is of another version");
        text += version;
        while ((line = next_header_line(&text, end, &n))) {
                if (n >= mac && memcmp(line, MAC_PREFIX, mac) == 0) {
                        header->length = (size_t) (text - data);
                        return read_mac(header, line, n, reterr);
                }
                if (n <= stanza || memcmp(line, STANZA_PREFIX, stanza) != 0)
                        break;
                r = read_stanza(header, line + stanza, n - stanza, &text, end, reterr);
                if (r < 0)
                        return r;
        }
        return damaged_header(reterr, "its header does not end");
}

/* ---- the armor ---- */

static const char *skip_blank(const char *data, const char *end) {
        while (data < end && strchr(" \t\r\n", *data) && *data)
                data++;
        return data;
}

bool age_is_file(const void *data, size_t length) {
        const char *end = (const char *) data + length, *start = skip_blank(data, end);
        const size_t version = strlen(VERSION_LINE) - 1, armor = strlen(AGE_ARMOR_BEGIN);

        return (length >= version && memcmp(data, VERSION_LINE, version) == 0) ||
               ((size_t) (end - start) >= armor && memcmp(start, AGE_ARMOR_BEGIN, armor) == 0);
}

static int damaged_armor(Error *reterr) {
        return error_setf(reterr, EBADMSG,
                          "is not an armored file of age that can be read: lines of 64 digits of "
                          "base64 between '" AGE_ARMOR_BEGIN "' and '" AGE_ARMOR_END "' are "
                          "expected");
}

/* Collects the digits of all lines. */
static int collect_armored_digits(const char *text, const char *end, Buffer *digits,
                                  Error *reterr) {
        const size_t last = strlen(AGE_ARMOR_END);
        bool is_last = false;

        while (text < end) {
                const char *newline = memchr(text, '\n', (size_t) (end - text));
                size_t n = (size_t) ((newline ? newline : end) - text);

                if (n > 0 && text[n - 1] == '\r')
                        n--;
                if (n == last && memcmp(text, AGE_ARMOR_END, last) == 0)
                        return skip_blank(text + last, end) == end ? 0 : damaged_armor(reterr);
                if (is_last || n == 0 || n > LINE_COLUMNS || memchr(text, '\r', n))
                        return damaged_armor(reterr);
                is_last = n < LINE_COLUMNS;
                if (buffer_append(digits, text, n, SIZE_MAX) < 0)
                        return -ENOMEM;
                if (!newline)
                        break;
                text = newline + 1;
        }
        return damaged_armor(reterr);
}

/* 1 with the bytes; 0: not armored. */
static int remove_armor(const char *data, size_t length, char **ret, size_t *ret_length,
                        Error *reterr) {
        const char *end = data + length, *text = skip_blank(data, end), *newline;
        const size_t head = strlen(AGE_ARMOR_BEGIN);
        cleanup_buffer Buffer digits = { 0 };
        int r;

        if ((size_t) (end - text) < head || memcmp(text, AGE_ARMOR_BEGIN, head) != 0)
                return 0;
        newline = memchr(text, '\n', (size_t) (end - text));
        if (!newline || skip_blank(text + head, newline) != newline)
                return damaged_armor(reterr);
        r = collect_armored_digits(newline + 1, end, &digits, reterr);
        if (r < 0)
                return r;
        if (digits.length == 0 || memchr(digits.data, '\0', digits.length))
                return damaged_armor(reterr);
        r = base64_decode(digits.data, ret, ret_length);
        return r == -ENOMEM ? r : r < 0 ? damaged_armor(reterr) : 1;
}

/* The bytes of the file; if it was armored, they are in '*ret_copy', which the caller frees. */
static int open_armor(const void **data, size_t *length, char **ret_copy, Error *reterr) {
        int r;

        if (*length > AGE_FILE_MAX)
                return error_setf(reterr, EBADMSG, "is longer than %d bytes", AGE_FILE_MAX);
        r = remove_armor(*data, *length, ret_copy, length, reterr);
        if (r > 0)
                *data = *ret_copy;
        return MIN(r, 0);
}

int age_count_recipients(const void *data, size_t length, Error *reterr) {
        cleanup_with(age_header_done) AgeHeader header = { 0 };
        cleanup_free char *copy = NULL;
        int r = open_armor(&data, &length, &copy, reterr);

        if (r >= 0)
                r = read_header(data, length, &header, reterr);
        return r < 0 ? r : (int) header.n_stanzas;
}

/* ---- the payload ---- */

static void make_chunk_nonce(uint64_t counter, bool is_last, uint8_t ret[CHACHA_NONCE_SIZE]) {
        memset(ret, 0, CHACHA_NONCE_SIZE);
        for (size_t i = 0; i < sizeof(counter); i++)
                ret[COUNTER_SIZE - 1 - i] = (uint8_t) (counter >> (i * BYTE_BITS) & BYTE_MASK);
        ret[COUNTER_SIZE] = is_last;
}

/* The last chunk is empty only if the whole payload is. */
static int decrypt_payload(const uint8_t *key, const uint8_t *data, size_t length, uint8_t *ret,
                           size_t *ret_length, Error *reterr) {
        uint8_t nonce[CHACHA_NONCE_SIZE];
        size_t done = 0;

        for (uint64_t counter = 0;; counter++) {
                size_t n = MIN(length, (size_t) CHUNK_SIZE + TAG_SIZE);
                bool is_last = n == length;

                if (n < TAG_SIZE || (n == TAG_SIZE && counter > 0))
                        return error_setf(reterr, EBADMSG, "is damaged: its end is missing");
                make_chunk_nonce(counter, is_last, nonce);
                if (!open_bytes(key, nonce, data, n - TAG_SIZE, ret + done))
                        return error_setf(reterr, EBADMSG,
                                          "is damaged: its content is not what was encrypted");
                done += n - TAG_SIZE;
                if (is_last)
                        break;
                data += n;
                length -= n;
        }
        *ret_length = done;
        return 0;
}

static void encrypt_payload(const uint8_t *key, const uint8_t *data, size_t length, uint8_t *ret) {
        uint8_t nonce[CHACHA_NONCE_SIZE];
        size_t n;

        for (uint64_t counter = 0;; counter++) {
                n = MIN(length, (size_t) CHUNK_SIZE);
                make_chunk_nonce(counter, n == length, nonce);
                seal_bytes(key, nonce, data, n, ret);
                if (n == length)
                        return;
                data += n;
                length -= n;
                ret += n + TAG_SIZE;
        }
}

/* ---- decryption ---- */

static bool unwrap_file_key(const AgeStanza *stanza, const AgeKey *identity,
                            const AgeKey *recipient, uint8_t ret[FILE_KEY_SIZE]) {
        static const uint8_t nonce[CHACHA_NONCE_SIZE];
        uint8_t key[CHACHA_KEY_SIZE];
        bool is_open = derive_wrapping_key(identity->bytes, stanza->share, stanza->share,
                                           recipient->bytes, key) &&
                       open_bytes(key, nonce, stanza->body, FILE_KEY_SIZE, ret);
        explicit_bzero(key, sizeof(key));
        return is_open;
}

static int find_file_key(const AgeHeader *header, const AgeKey *identities, size_t n,
                         uint8_t ret[FILE_KEY_SIZE], Error *reterr) {
        for (size_t i = 0; i < n; i++) {
                AgeKey recipient;

                age_identity_recipient(&identities[i], &recipient);
                for (size_t j = 0; j < header->n_stanzas; j++)
                        if (unwrap_file_key(&header->stanzas[j], &identities[i], &recipient, ret))
                                return 0;
        }
        return error_setf(reterr, ENOKEY,
                          "is encrypted for %zu recipients of X25519, and none of them is an "
                          "identity of this node",
                          header->n_stanzas);
}

static int decrypt_with_key(const AgeHeader *header, const uint8_t file_key[FILE_KEY_SIZE],
                            const void *data, size_t length, char **ret, size_t *ret_length,
                            Error *reterr) {
        const uint8_t *payload = (const uint8_t *) data + header->length;
        uint8_t mac[MAC_SIZE], key[CHACHA_KEY_SIZE];
        cleanup_free char *text = NULL;
        size_t n = 0;
        int r;

        compute_mac(file_key, header->text, header->mac_length, mac);
        if (!memeql_sec(mac, header->mac, MAC_SIZE))
                return error_setf(reterr, EBADMSG, "is damaged: its header was changed");
        length -= header->length;
        if (length < PAYLOAD_NONCE_SIZE)
                return error_setf(reterr, EBADMSG, "is damaged: its end is missing");
        text = malloc(length + 1);
        if (!text)
                return -ENOMEM;
        chacha_derive_key(file_key, FILE_KEY_SIZE, payload, PAYLOAD_NONCE_SIZE, "payload", key);
        r = decrypt_payload(key, payload + PAYLOAD_NONCE_SIZE, length - PAYLOAD_NONCE_SIZE,
                            (uint8_t *) text, &n, reterr);
        explicit_bzero(key, sizeof(key));
        if (r < 0) {
                explicit_bzero(text, length + 1); /* the chunks before the damaged one */
                return r;
        }
        text[n] = '\0';
        *ret_length = n;
        *ret = TAKE_PTR(text);
        return 0;
}

int age_decrypt(const void *data, size_t length, const AgeKey *identities, size_t n, char **ret,
                size_t *ret_length, Error *reterr) {
        cleanup_with(age_header_done) AgeHeader header = { 0 };
        cleanup_free char *copy = NULL;
        uint8_t file_key[FILE_KEY_SIZE];
        int r = open_armor(&data, &length, &copy, reterr);

        if (r < 0)
                return r;
        r = read_header(data, length, &header, reterr);
        if (r < 0)
                return r;
        r = find_file_key(&header, identities, n, file_key, reterr);
        if (r >= 0)
                r = decrypt_with_key(&header, file_key, data, length, ret, ret_length, reterr);
        explicit_bzero(file_key, sizeof(file_key));
        return r;
}

/* ---- encryption ---- */

/* Without padding. */
static int append_base64(Buffer *to, const void *data, size_t size) {
        char text[LINE_COLUMNS * 2];

        base64_encode(data, size, text);
        return buffer_append(to, text, strcspn(text, "="), SIZE_MAX);
}

static int append_text(Buffer *to, const char *text) {
        return buffer_append(to, text, strlen(text), SIZE_MAX);
}

static int append_stanza(Buffer *to, const AgeKey *recipient,
                         const uint8_t file_key[FILE_KEY_SIZE]) {
        static const uint8_t nonce[CHACHA_NONCE_SIZE];
        uint8_t key[CHACHA_KEY_SIZE], wrapped[WRAPPED_SIZE];
        AgeKey ephemeral, share;
        int r = age_identity_make(&ephemeral);

        if (r < 0)
                return r;
        age_identity_recipient(&ephemeral, &share);
        if (!derive_wrapping_key(ephemeral.bytes, recipient->bytes, share.bytes, recipient->bytes,
                                 key))
                r = -EINVAL;
        seal_bytes(key, nonce, file_key, FILE_KEY_SIZE, wrapped);
        explicit_bzero(&ephemeral, sizeof(ephemeral));
        explicit_bzero(key, sizeof(key));
        if (r < 0)
                return r;
        if (append_text(to, STANZA_PREFIX X25519_ARGUMENT) < 0 ||
            append_base64(to, share.bytes, AGE_KEY_SIZE) < 0 || append_text(to, "\n") < 0 ||
            append_base64(to, wrapped, sizeof(wrapped)) < 0 || append_text(to, "\n") < 0)
                return -ENOMEM;
        return 0;
}

static int append_header(Buffer *to, const AgeKey *recipients, size_t n,
                         const uint8_t file_key[FILE_KEY_SIZE]) {
        uint8_t mac[MAC_SIZE];
        int r = append_text(to, VERSION_LINE);

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = append_stanza(to, &recipients[i], file_key);
        if (r >= 0)
                r = append_text(to, MAC_PREFIX);
        if (r < 0)
                return r;
        compute_mac(file_key, to->data, to->length, mac);
        if (append_text(to, " ") < 0 || append_base64(to, mac, sizeof(mac)) < 0)
                return -ENOMEM;
        return append_text(to, "\n");
}

static int append_payload(Buffer *to, const void *data, size_t length,
                          const uint8_t file_key[FILE_KEY_SIZE]) {
        size_t n_chunks = length == 0 ? 1 : (length + CHUNK_SIZE - 1) / CHUNK_SIZE;
        size_t size = PAYLOAD_NONCE_SIZE + length + n_chunks * TAG_SIZE;
        uint8_t key[CHACHA_KEY_SIZE], *at;
        int r;

        at = (uint8_t *) buffer_reserve(to, size);
        if (!at)
                return -ENOMEM;
        r = fill_with_random(at, PAYLOAD_NONCE_SIZE);
        if (r < 0)
                return r;
        chacha_derive_key(file_key, FILE_KEY_SIZE, at, PAYLOAD_NONCE_SIZE, "payload", key);
        encrypt_payload(key, data, length, at + PAYLOAD_NONCE_SIZE);
        explicit_bzero(key, sizeof(key));
        to->length += size;
        return 0;
}

static int add_armor(const Buffer *file, char **ret) {
        size_t size = (file->length + 2) / 3 * 4;
        cleanup_free char *digits = malloc(size + 1);
        cleanup_buffer Buffer text = { 0 };
        int r = digits ? append_text(&text, AGE_ARMOR_BEGIN "\n") : -ENOMEM;

        if (r < 0)
                return r;
        base64_encode(file->data, file->length, digits);
        for (size_t i = 0; r >= 0 && i < size; i += LINE_COLUMNS) {
                r = buffer_append(&text, digits + i, MIN(size - i, (size_t) LINE_COLUMNS),
                                  SIZE_MAX);
                if (r >= 0)
                        r = append_text(&text, "\n");
        }
        if (r >= 0)
                r = append_text(&text, AGE_ARMOR_END "\n");
        if (r < 0)
                return r;
        *ret = buffer_take(&text);
        return 0;
}

int age_encrypt(const void *data, size_t length, const AgeKey *recipients, size_t n, char **ret) {
        cleanup_buffer Buffer file = { 0 };
        uint8_t file_key[FILE_KEY_SIZE];
        int r;

        if (n == 0 || n > AGE_RECIPIENTS_MAX || length > AGE_FILE_MAX)
                return -EINVAL;
        r = fill_with_random(file_key, sizeof(file_key));
        if (r < 0)
                return r;
        r = append_header(&file, recipients, n, file_key);
        if (r >= 0)
                r = append_payload(&file, data, length, file_key);
        explicit_bzero(file_key, sizeof(file_key));
        return r < 0 ? r : add_armor(&file, ret);
}
