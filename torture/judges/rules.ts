/**
 * The rules of the interface, as the analyser's linter has them: it sees what crosses the PCIe link and nothing of what the
 * device makes of it. Where nothing goes wrong, libraries and drivers keep every rule.
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
