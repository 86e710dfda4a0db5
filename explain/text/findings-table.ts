/** Findings of the linter as a table for a terminal. */
import Table from 'cli-table3';
import { type Finding, nsText } from '../../analyser/index.ts';

/** Each finding with the offending access. */
export function findingsTable(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'The linter found nothing.';
  const table = new Table({
    head: ['', 'rule', 'sheet', 'object', 'what', 'times', 'first at'],
    style: { head: [], border: [] },
    wordWrap: true,
    colWidths: [9, 24, 12, 16, 60, 7, null],
  });
  for (const { severity, rule, section, object, text, access, count, atPs, node } of findings)
    table.push([severity, rule, section, `${node} ${object}`, `${text}\n${access}`, count, nsText(atPs)]);
  return table.toString();
}
