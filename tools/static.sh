# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Builds the archives for -Dstatic=true that Debian lacks; for tools/install-deps, which has
# say, fail and update.
#
# Debian has static archives of all libraries but two, which are built here from Debian's
# own source packages, with its patches; apt verifies them by the archive's signed index.
# It has none of cJSON, and that of libcurl needs Kerberos, LDAP and others, which have
# no archives. ARCHIVE.source says for the image's SBOM which source package and version
# that was, and ARCHIVE.copyright is Debian's copyright file.

static_cjson=/usr/local/lib/libcjson.a
static_curl=/usr/local/lib/pkgconfig/libcurl-http.pc
# The prefix of each version of libcurl, below static_root.
static_root=
curl_prefix=$cache/curl
static_cc=gcc
static_ar=ar
static_configure=()

# From here on the archives are built for arm64, in the root directory of tools/cross/root.
static_for_arm64()
{
	static_root=$("$(dirname "$0")/cross/root")
	# clang looks for libraries there, and not in /usr/local/lib.
	static_cjson=$static_root/usr/lib/aarch64-linux-gnu/libcjson.a
	static_curl=$static_root/usr/local/lib/pkgconfig/libcurl-http.pc
	curl_prefix=/usr/local/curl
	static_cc="clang --target=aarch64-linux-gnu --sysroot=$static_root"
	static_cc="$static_cc -B/usr/aarch64-linux-gnu/bin"
	static_ar=llvm-ar
	static_configure=(--host=aarch64-linux-gnu AR=llvm-ar RANLIB=llvm-ranlib)
	export PKG_CONFIG_SYSROOT_DIR=$static_root
	export PKG_CONFIG_LIBDIR=$static_root/usr/lib/aarch64-linux-gnu/pkgconfig
}

add_sources()
{
	local sources=/etc/apt/sources.list.d/natra-source.sources

	if { [ -e "$static_cjson.source" ] && [ -e "$static_curl" ]; } ||
		grep -qs bookworm-security "$sources"; then
		return
	fi
	cat >"$sources" <<-END
	Types: deb-src
	URIs: http://deb.debian.org/debian
	Suites: bookworm
	Components: main
	Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

	Types: deb-src
	URIs: http://deb.debian.org/debian-security
	Suites: bookworm-security
	Components: main
	Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
	END
}

# Says beside an archive which source it was built from. ARCHIVE.source comes last,
# because it says that all is there, and never is empty.
note_source()
{
	local name version

	cp "$2/debian/copyright" "$1.copyright" &&
		name=$(cd "$2" && dpkg-parsechangelog -S Source) &&
		version=$(cd "$2" && dpkg-parsechangelog -S Version) &&
		[ -n "$name" ] && [ -n "$version" ] &&
		echo "$name $version" >"$1.source.new" &&
		mv "$1.source.new" "$1.source"
}

install_static_cjson()
{
	local work

	[ -e "$static_cjson.source" ] && return
	say "building $static_cjson"
	add_sources
	update
	work=$(mktemp -d)
	(cd "$work" && apt-get source -qq cjson >/dev/null 2>&1 &&
		$static_cc -O2 -fPIC -c cjson-*/cJSON.c && $static_ar rcs libcjson.a cJSON.o &&
		install -m 644 libcjson.a "$static_cjson" &&
		note_source "$static_cjson" cjson-*/) || {
		rm -rf "$work"
		fail "cannot build cJSON from Debian's source"
	}
	rm -rf "$work"
}

# The API server needs HTTP, TLS and a header, and nothing else of what curl can do.
curl_without=(ftp file ldap ldaps rtsp dict telnet tftp pop3 imap smb smtp gopher mqtt
	manual alt-svc hsts cookies proxy ntlm ntlm-wb tls-srp unix-sockets doh mime netrc
	progress-meter dateparse get-easy-options crypto-auth http-auth headers-api
	dnsshuffle libcurl-option)
curl_no_library=(zlib brotli zstd libpsl libidn2 nghttp2 nghttp3 librtmp libssh2 libssh
	gssapi ca-bundle ca-path)

# Builds libcurl for a prefix of the source's version, below the directory `to`.
build_curl()
{
	cd "$1"
	apt-get source -qq curl
	cd curl-*/
	# Debian's patches are newer than what was generated from the files that
	# they change, which matters only to its packages.
	CC=$static_cc \
		CFLAGS="-O2 -fPIC -fstack-protector-strong -ffunction-sections -fdata-sections" \
		CPPFLAGS=-D_FORTIFY_SOURCE=2 ./configure -q --prefix="$2" \
		--disable-shared --enable-static --with-openssl \
		--enable-threaded-resolver "${curl_without[@]/#/--disable-}" \
		"${curl_no_library[@]/#/--without-}" "${static_configure[@]}"
	make -s -j"$(nproc)" AUTOCONF=: AUTOHEADER=: AUTOMAKE=: ACLOCAL=: -C lib
	make -s -C lib install DESTDIR="$1/to"
	make -s -C include install DESTDIR="$1/to"
	sed 's/^Name: .*/Name: libcurl-http/' libcurl.pc >"$1/to/$2/lib/libcurl-http.pc"
	note_source "$1/to/$2/lib/libcurl.a" .
}

# Its name differs from that of Debian's libcurl, which the build without -Dstatic=true
# uses.
install_static_curl()
{
	local work log version prefix dir status

	dir=$(dirname "$(realpath -m "$static_curl")")
	[ -e "$static_curl" ] && [ -e "$dir/libcurl.a.source" ] && return
	add_sources
	update
	version=$(apt-cache showsrc --only-source curl | sed -n 's/^Version: //p' |
		sort -V | tail -n 1)
	prefix=$curl_prefix-$version
	dir=$static_root$prefix
	if [ ! -e "$dir/lib/libcurl.a.source" ]; then
		say "building $dir"
		work=$(mktemp -d)
		log=$work/log
		# As a condition, it would not end at the first step that fails.
		set +e
		(
			set -e
			build_curl "$work" "$prefix"
		) >"$log" 2>&1 </dev/null
		status=$?
		set -e
		if [ "$status" -ne 0 ]; then
			tail -n 30 "$log" >&2
			rm -rf "$work"
			fail "cannot build libcurl from Debian's source"
		fi
		mkdir -p "${dir%/*}"
		rm -rf "$dir"
		cp -r "$work/to/$prefix" "$dir.new"
		mv "$dir.new" "$dir"
		rm -rf "$work"
	fi
	mkdir -p "${static_curl%/*}"
	ln -sf "$dir/lib/libcurl-http.pc" "$static_curl"
}
