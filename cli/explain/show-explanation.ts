/** Outputs of an explained operation: text, a page, JSON. */
import type { Command } from 'commander';
import type { Explanation } from '../../explain/timeline/index.ts';
import type { MachineOptions, Report } from '../../machine/index.ts';
import { type HtmlChoice, headOf, writePage } from '../html-output.ts';
import { argumentsOf, invocationOf } from '../invocation.ts';
import { machineHashOf } from '../options.ts';
import { type Screen, writeJson } from '../output.ts';
import { explainPage } from './explain-page.ts';
import { explanationText, sentencesOf } from './explanation.ts';

interface Shown {
  /** Arguments of the command in addition to its options. */
  readonly words: readonly string[];
  readonly machine: MachineOptions;
  readonly options: HtmlChoice & { readonly json?: string };
  readonly screen: Screen;
}

/** Prints an explanation, and writes the files that the options name. */
export function showExplanation(
  command: Command,
  { words, machine, options, screen }: Shown,
  { report, ...explanation }: Explanation & { readonly report: Report },
): void {
  screen.print(explanationText(explanation));
  const { ordinal, node, operation } = explanation;
  const ran = {
    title: `Operation ${ordinal} of host ${node}: ${operation}`,
    words,
    machine,
    elapsedPs: report.elapsedPs,
    sentences: sentencesOf(explanation),
  };
  writePage(options, () => explainPage(headOf(command, ran), explanation, report), screen);
  if (options.json === undefined) return;
  writeJson(options.json, {
    schema: 'hca-explain/1',
    invocation: invocationOf(command, [...words, ...argumentsOf(command)], machine),
    configHash: machineHashOf(machine),
    ...explanation,
  });
}
