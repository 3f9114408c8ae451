#!/bin/sh
# SPDX-License-Identifier: MIT
# fetch_text.sh [FILE]: the text that the language models learn, "tiny Shakespeare", 1,115,394 characters; FILE is input.txt unless given.
set -eu
file=${1:-input.txt}
url=https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt
[ -f "$file" ] || curl -fL --retry 3 -o "$file.part" "$url"
[ -f "$file" ] || mv "$file.part" "$file"
echo "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed  $file" | sha256sum -c -
