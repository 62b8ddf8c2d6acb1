# shellcheck shell=bash disable=SC2034
heading="Four owners, \`ON DELETE CASCADE\`"
due=$((option[rows] / 5))
reference=1
