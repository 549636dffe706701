/*
 * test_run -- what a test program leaves behind, it takes away.
 *
 * A test cleans up after itself when it ends, even by a failed assertion; one
 * that crashes or runs out of time can't. So everything bears the name of the
 * program's run: directories lie in $POSTRIDER_RUN_DIR, which the run makes,
 * and databases have $POSTRIDER_RUN in their names (test_db.h). Once all
 * tests are over the run removes these, and nothing else.
 *
 * Hooks of Criterion's runner; part of every test program.
 */
#ifndef POSTRIDER_TEST_RUN_H
#define POSTRIDER_TEST_RUN_H

#define TEST_RUN "POSTRIDER_RUN"
#define TEST_RUN_DIR "POSTRIDER_RUN_DIR"

#endif
