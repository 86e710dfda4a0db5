/** Programs that the lab offers, and the faults in its menu. */
import keyValueExample from '../../examples/key-value-lookup.ts?raw';
import pingPongExample from '../../examples/rc-pingpong.ts?raw';
import barrier from '../programs/barrier.ts?raw';
import bothWait from '../programs/both-wait.ts?raw';
import bufferReused from '../programs/buffer-reused.ts?raw';
import cqOverrun from '../programs/cq-overrun.ts?raw';
import deregistered from '../programs/deregistered.ts?raw';
import keyValue from '../programs/key-value.ts?raw';
import lostWakeup from '../programs/lost-wakeup.ts?raw';
import missingReceive from '../programs/missing-receive.ts?raw';
import oneSided from '../programs/one-sided.ts?raw';
import pingPong from '../programs/ping-pong.ts?raw';
import queueFull from '../programs/queue-full.ts?raw';
import ring from '../programs/ring.ts?raw';
import rpc from '../programs/rpc.ts?raw';
import shortRegion from '../programs/short-region.ts?raw';
import unsignalled from '../programs/unsignalled.ts?raw';
import writeAndPoll from '../programs/write-and-poll.ts?raw';
import wrongKey from '../programs/wrong-key.ts?raw';
import wrongPsn from '../programs/wrong-psn.ts?raw';
import wrongQkey from '../programs/wrong-qkey.ts?raw';
import wrongQpn from '../programs/wrong-qpn.ts?raw';

export interface LabProgramText {
  /** Name in addresses. */
  readonly name: string;
  readonly title: string;
  readonly text: string;
}

/** Returns the text as a user of the package writes it. */
const asUser = (text: string): string => text.replace(/'(\.\.\/)+(browser|index)\.ts'/g, "'hca-emulator'");

const texts: readonly (readonly [name: string, title: string, text: string])[] = [
  ['ping-pong', 'Ping-pong by SEND', pingPong],
  ['write-and-poll', 'WRITE, seen by polling memory', writeAndPoll],
  ['rpc', 'Remote procedure calls', rpc],
  ['key-value', 'Key-value look-ups by READ', keyValue],
  ['ring', 'Ring buffer by WRITE with immediate', ring],
  ['barrier', 'Barrier by atomics', barrier],
  ['buffer-reused', 'Mistake: buffer reused in flight', bufferReused],
  ['cq-overrun', 'Mistake: CQ overrun', cqOverrun],
  ['missing-receive', 'Mistake: no receive posted', missingReceive],
  ['wrong-key', 'Mistake: wrong rkey', wrongKey],
  ['short-region', 'Mistake: region too short', shortRegion],
  ['deregistered', 'Mistake: memory deregistered', deregistered],
  ['wrong-qpn', 'Mistake: wrong QPN', wrongQpn],
  ['wrong-psn', 'Mistake: wrong PSN', wrongPsn],
  ['wrong-qkey', 'Mistake: wrong Q_Key', wrongQkey],
  ['unsignalled', 'Mistake: unsignalled, and awaited', unsignalled],
  ['queue-full', 'Mistake: send queue full', queueFull],
  ['lost-wakeup', 'Mistake: completion left in an armed CQ', lostWakeup],
  ['one-sided', 'Mistake: the passive side polls', oneSided],
  ['both-wait', 'Mistake: both sides wait', bothWait],
  ['example-rc-pingpong', 'Example of the package: rc-pingpong', pingPongExample],
  ['example-key-value-lookup', 'Example of the package: key-value-lookup', keyValueExample],
];

export const labPrograms: readonly LabProgramText[] = texts.map(([name, title, text]) => ({
  name,
  title,
  text: asUser(text),
}));

/** The text of a program that a state names or contains. */
export function textOf(program: { readonly name: string } | { readonly text: string }): string {
  if ('text' in program) return program.text;
  return (labPrograms.find(({ name }) => name === program.name) ?? labPrograms[0]!).text;
}

/** Faults of a state, separately. */
export const faultsIn = (fault: string): readonly string[] => (fault === '' ? [] : fault.split('+'));

/** Faults in the form of `hca --fault`; several are joined by `+`. */
export const faultMenu: readonly { readonly text: string; readonly title: string }[] = [
  { text: '', title: 'none' },
  { text: 'packet=lost,nth=3,node=0', title: 'third packet of host 0 lost' },
  { text: 'packet=corrupted,nth=1,node=1', title: 'first packet of host 1 corrupted' },
  { text: 'packet=late,nth=2,delay=5us,node=0', title: 'second packet of host 0 late by 5 µs' },
  { text: 'packet=lost,chance=10%,node=0', title: 'one packet of host 0 in ten lost' },
  { text: 'interrupt=lost,nth=1,node=0', title: 'first interrupt of host 0 lost' },
];
