/**
 * The rules of the interface, as the analyser's linter has them: it sees what crosses the PCIe link and nothing of what the
 * device makes of it. Where nothing goes wrong, libraries and drivers keep every rule.
 */
import { isOnEthernet } from '../ethernet-cable.ts';
import type { Played } from '../run-story.ts';
import { sceneOf } from '../scenes/index.ts';

/**
 * On Ethernet an interrupt handler's frame may be rung before a thread's that the interrupt put off half way: the driver has no way yet to
 * keep interrupts out (spin_lock_irqsave). The device takes both, in order, at the second doorbell.
 */
const overtaken = 'doorbell-without-work';

export function judgeRules({ story, lint }: Played): string[] {
  if (story.climate === 'broken') return [];
  const onPurpose = story.scene === undefined ? [] : (sceneOf(story.scene).breaksRules ?? []);
  return lint
    .filter(({ rule }) => !onPurpose.includes(rule) && !(isOnEthernet(story) && rule === overtaken))
    .map(({ rule, node, object, text }) => `${node} broke the rule ${rule} at ${object}: ${text}`);
}
