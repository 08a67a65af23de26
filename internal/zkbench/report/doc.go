// Package report renders records for people who were not there. It makes one HTML page
// that needs nothing but itself, the figures on it as SVG, a Markdown table, and
// HdrHistogram's percentile files.
//
//  1. [Group] the runs: one group for each set of lines that belong into one
//     figure.
//  2. Get the [Figure]s of a group from [Figures].
//  3. Render: [HTML] for the page, [SVG], [Markdown], [Percentiles].
//
// All of it is made from records alone, so it can be made again, and the same
// records give the same bytes.
package report
