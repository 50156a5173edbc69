/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Singly linked lists of structs with a member 'next'. The head is a pointer to the first item,
 * NULL if the list is empty; the list does not own its items. */

#include "common/macros.h"

/* The body must not remove 'item' from the list; see list_foreach_safe(). */
#define list_foreach(item, head) for (__typeof__(&*(head)) item = (head); item; item = (item)->next)

/* The body may remove and free 'item', but no other item. */
#define list_foreach_safe(item, head)                                                          \
        for (__typeof__(&*(head)) item = (head), item##_next = item ? item->next : NULL; item; \
             item = item##_next, item##_next = item ? item->next : NULL)

/* Inserts 'item' at the front. */
#define LIST_PREPEND(head, item)       \
        ({                             \
                (item)->next = (head); \
                (head) = (item);       \
        })

/* Appends 'item'. Walks the whole list, like LIST_REMOVE(). */
#define LIST_APPEND(head, item)                   \
        ({                                        \
                __typeof__(head) *end_ = &(head); \
                while (*end_)                     \
                        end_ = &(*end_)->next;    \
                (item)->next = NULL;              \
                *end_ = (item);                   \
        })

/* Removes 'item' if it is in the list. */
#define LIST_REMOVE(head, item)                      \
        ({                                           \
                __typeof__(head) *place_ = &(head);  \
                while (*place_ && *place_ != (item)) \
                        place_ = &(*place_)->next;   \
                if (*place_)                         \
                        *place_ = (item)->next;      \
        })
