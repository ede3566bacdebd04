#!/bin/sh
# tools/site/from-disk.R, on a page that is made up here around the head that
# pkgdown gives its pages: nothing is left that a network is needed for.

root=$(pwd -P)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
site=$scratch/site
mkdir -p "$site/reference" || exit 1
status=0

templates=$(Rscript -e 'cat(system.file("BS5/templates", package = "pkgdown"))')
write_page() {
  echo '<!DOCTYPE html><html><head>'
  cat "$templates/head.html"
  cat <<'END'
</head><body>
<input type="search" data-search-index="../search.json" id="search-input">
<div class="row"><main id="main">
<h2 id="one">One &amp; all<a class="anchor" href="#one"></a></h2>
<p>Where <span class="math inline">\(a &lt; b_i\)</span> and
<span class="math display">\[\sqrt{\frac{1}
2}\]</span></p>
<h3 id="two">Two</h3>
<p>A cost of $1 is no formula, nor is <code>\(x) x</code>, but \(\sqrt{2}\)
is, and $$\frac{1}{2}$$.</p>
<pre><code>f &lt;- \(x) (\(y) y)(x)</code></pre>
</main><aside><nav id="toc"><h2>On this page</h2></nav></aside></div>
</body></html>
END
}
write_page > "$site/reference/page.html"
echo '[{"path":"/reference/page.html","id":"two","dir":"Reference","previous_headings":"","what":"Two","title":"The page","text":"alpha beta","code":"knn_graph(x)"},{"path":"/reference/page.html","id":"one","dir":"Reference","previous_headings":"","what":"One","title":"The page","text":"two words: gamma","code":""}]' \
  > "$site/search.json"
echo 'fetch("search.json")' > "$site/pkgdown.js"

Rscript tools/site/from-disk.R "$site" || exit 1

# expect WORDS COUNT PATTERN FILE
expect() {
  got=$(grep -o -e "$3" "$site/$4" | wc -l)
  if [ "$((got))" -ne "$2" ]; then
    echo "$1: $((got)) times, not $2"
    status=1
  fi
}
page=reference/page.html
expect "remote scripts" 0 '<script[^>]*src="\(http\|file\|//\)' $page
expect "remote style sheets" 0 'stylesheet[^>]*http' $page
expect "local scripts" 1 '<script src="[^"]*pkgdown.js"></script>' $page
expect "formulas" 4 '<math ' $page
expect "formulas on lines of their own" 2 '<math display="block"' $page
expect "TeX" 0 'class="math' $page
expect "code, untouched" 1 'f &lt;- \\(x) (\\(y) y)(x)' $page
expect "entries of the contents" 1 \
  '<a class="nav-link" href="#one">One &amp; all</a><ul class="nav navbar-nav"><li><a class="nav-link" href="#two">Two</a>' \
  $page
expect "the index as a script" 1 '^window.searchIndex = \[' search-index.js
expect "paths from the site's root" 2 '"path":"reference/page.html"' search-index.js
expect "reading of data" 0 'fetch(' pkgdown.js

# What would be fetched is an error.
echo '@import url("https://letters.example/a.css");' > "$site/a.css"
if Rscript tools/site/from-disk.R "$site" > "$scratch/log" 2>&1; then
  echo "A style sheet that fetches another is not seen."
  status=1
fi

# The search itself, where there is something to run it with.
if command -v node > /dev/null; then
  node -e '
    const site = process.argv[1];
    const window = {};
    eval(require("fs").readFileSync(site + "/search-index.js", "utf8"));
    const { search, describe } = require(site + "/pkgdown.js");
    const ids = (query) =>
      search(window.searchIndex, query, 20).map((entry) => entry.id).join(" ");
    const expect = (query, wanted) => {
      if (ids(query) === wanted) return;
      console.log(`search for "${query}": "${ids(query)}", not "${wanted}"`);
      process.exitCode = 1;
    };
    expect("knn_graph", "two");
    expect("  BETA alpha ", "two");
    expect("two", "two one");
    expect("page", "two one");
    expect("alpha gamma", "");
    expect(" ", "");
    const said = describe(window.searchIndex[0]);
    if (said !== "Reference > The page > Two") {
      console.log(said);
      process.exitCode = 1;
    }
  ' "$site" || status=1
fi
exit $status
