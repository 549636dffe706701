#include <criterion/criterion.h>

#include "outboxd/elsewhere.h"

Test(elsewhere, a_peer_is_left_to_others_for_half_a_second)
{
	struct elsewhere elsewhere = { 0 };

	cr_expect_not(elsewhere_is(&elsewhere, 7, 1000));
	elsewhere_note(&elsewhere, 7, 1000);
	cr_expect(elsewhere_is(&elsewhere, 7, 1499));
	cr_expect_not(elsewhere_is(&elsewhere, 7, 1500));
	cr_expect_not(elsewhere_is(&elsewhere, 8, 1000));
	elsewhere_note(&elsewhere, 7, 1400);
	cr_expect(elsewhere_is(&elsewhere, 7, 1899));
	elsewhere_forget(&elsewhere, 7);
	cr_expect_not(elsewhere_is(&elsewhere, 7, 1400));
	elsewhere_forget(&elsewhere, 8);
}

Test(elsewhere, the_oldest_is_forgotten_for_a_new_one)
{
	struct elsewhere elsewhere = { 0 };

	for (int64_t peer = 1; peer <= ELSEWHERE_MAX + 1; peer++)
		elsewhere_note(&elsewhere, peer, 1000);
	cr_expect_not(elsewhere_is(&elsewhere, 1, 1000));
	for (int64_t peer = 2; peer <= ELSEWHERE_MAX + 1; peer++)
		cr_expect(elsewhere_is(&elsewhere, peer, 1000));
}
