/* SPDX-License-Identifier: Apache-2.0 */
#include "common/file-stamp.h"
#include "tests/test.h"

TEST(a_stamp_differs_when_one_of_its_attributes_differs)
{
        const struct stat st = {
                .st_dev = 1, .st_ino = 2, .st_size = 3, .st_mtim = { 4, 5 }, .st_ctim = { 6, 7 }
        };
        struct stat others[] = { st, st, st, st, st, st, st };
        FileStamp stamp = file_stamp_of(&st), same = file_stamp_of(&st);

        others[0].st_dev++;
        others[1].st_ino++;
        others[2].st_size++;
        others[3].st_mtim.tv_sec++;
        others[4].st_mtim.tv_nsec++;
        others[5].st_ctim.tv_sec++;
        others[6].st_ctim.tv_nsec--;
        EXPECT(file_stamps_match(&stamp, &same));
        for (size_t i = 0; i < N_ELEMENTS(others); i++) {
                FileStamp other = file_stamp_of(&others[i]);

                EXPECT(!file_stamps_match(&stamp, &other));
        }
}

TEST(a_missing_file_has_a_stamp_of_zeros)
{
        FileStamp none = { 0 }, stamp = file_stamp_of(&(struct stat){ 0 });

        EXPECT(file_stamps_match(&stamp, &none));
}
