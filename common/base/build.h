/*
 * build -- what the build decided: version and places.
 *
 * The makefile defines them; the fallbacks serve a file compiled by hand.
 */
#ifndef POSTRIDER_BUILD_H
#define POSTRIDER_BUILD_H

#ifndef POSTRIDER_VERSION
#define POSTRIDER_VERSION "0.1.0"
#endif
#ifndef POSTRIDER_SCHEMA_DIR
#define POSTRIDER_SCHEMA_DIR "/usr/local/share/postrider/schema"
#endif
#ifndef POSTRIDER_CONF_FILE
#define POSTRIDER_CONF_FILE "/usr/local/etc/postrider/postrider.conf"
#endif

#endif
