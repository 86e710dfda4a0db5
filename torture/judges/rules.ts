/**
 * Judges the rules of the interface by the analyser's linter: it sees the traffic of the PCIe link and no state of the
 * device. In a faultless story, libraries and drivers keep every rule.
 */
import type { Played } from '../run-story.ts';
import { traitsOf } from './scene-traits.ts';

export function judgeRules({ story, lint }: Played): string[] {
  if (story.climate === 'broken') return [];
  const { breaksRules: onPurpose = [] } = traitsOf(story);
  return lint
    .filter(({ rule }) => !onPurpose.includes(rule))
    .map(({ rule, node, object, text }) => `${node} broke the rule ${rule} at ${object}: ${text}`);
}
