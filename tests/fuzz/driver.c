/*
 * driver -- runs a fuzz target over the files of a corpus, once each.
 *
 * For compilers without libFuzzer, and as a plain test: each argument is a
 * file or a folder of files.
 */
#include "common/base/base.h"

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat about;
	uint8_t *data;
	size_t len;

	if (file == NULL || fstat(fileno(file), &about) != 0) {
		perror(path);
		return false;
	}
	data = malloc((size_t)about.st_size + 1);
	assert(data != NULL);
	len = fread(data, 1, (size_t)about.st_size, file);
	fclose(file);
	LLVMFuzzerTestOneInput(data, len);
	free(data);
	return true;
}

/* The number of files that were run, or -1. */
static int run_folder(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	char file[PATH_MAX];
	int count = 0;

	if (folder == NULL)
		return run_file(path) ? 1 : -1;
	while (count >= 0 && (entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		count = run_file(file) ? count + 1 : -1;
	}
	closedir(folder);
	return count;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int count = run_folder(argv[i]);

		if (count < 0)
			return 1;
		total += count;
	}
	printf("%d inputs\n", total);
	return total > 0 ? 0 : 1;
}
