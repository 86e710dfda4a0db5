/** An error that a program threw itself while all calls and requests went well: its own check of what it received failed. */
import { counted, type Explanation } from './cause.ts';
import type { Scene } from './scene.ts';

export function thrownExplained(scene: Scene, node: number, text: string): Explanation {
  const datagrams = (scene.device(node)?.qps ?? [])
    .filter(({ service }) => service === 'UD')
    .reduce((sum, { received }) => sum + received, 0);
  if (datagrams > 0)
    return {
      cause: 'grh-not-skipped',
      sentence: `A program of host ${node} threw "${text}" after it had received ${counted(datagrams, 'datagram')}: the first 40 bytes of each receive are for the GRH, the payload begins at byte 40`,
      evidence: { datagrams, error: text },
      advice: 'Read the payload of a UD receive from byte 40 on; wc.byte_len counts these 40 bytes, too.',
    };
  return {
    cause: 'program-threw',
    sentence: `A program of host ${node} threw "${text}"; no call was refused, and no request failed`,
    evidence: { error: text },
    advice: 'The program’s own check failed: compare what it expects with what its peer sends.',
  };
}

/** The driver did not start: no program has run. */
export const bootFailed = (node: number, text: string): Explanation => ({
  cause: 'driver-failed',
  sentence: `The driver of host ${node} did not start: ${text}`,
  evidence: { error: text },
  advice:
    'See the faults of the run, and the kernel’s messages: the device refused a command, or did not answer.',
});
