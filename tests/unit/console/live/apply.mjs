// Prints pages after their differences were applied. Input: a list of {page, difference}.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { apply } = await import(new URL("difference.js", pathToFileURL(`${process.argv[2]}/`)));
const given = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(given.map(({ page, difference }) => apply(page, difference))));
