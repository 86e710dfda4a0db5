/**
 * Independent implementations at the two ends of a bad cable: packets between a stock Soft-RoCE and the adapter are lost,
 * duplicated, damaged in a switch and reordered, in both directions, and every byte is still right (IBTA volume 1, 9.7).
 * Datagrams are excluded: only the connection manager repeats them, after seconds.
 */
import type { FaultPlan } from '../../../machine/faults/index.ts';
import { addresses } from './ethernet-ends.ts';
import type { Scenario, Step } from './scenario.ts';
import { bothUp, bothWays, perftest, setVersion, softRoceEnds } from './soft-roce-peer.ts';
import { ScenarioFailure, type Stage } from './stage.ts';
import { storageStep } from './storage.ts';

/** Packets sent by either end; node 1 is the third-party endpoint. */
export const badCable: FaultPlan = [0, 1].flatMap((node) =>
  (['requests', 'responses'] as const).flatMap((only) => [
    { packet: 'lost', only, chance: '0.5%', node },
    { packet: 'corrupted', crc: 'icrc', only, chance: '0.5%', node },
    { packet: 'duplicated', only, chance: '1%', delay: '50us', node },
    { packet: 'reordered', only, chance: '1%', by: 2, delay: '1ms', node },
  ]),
);

const counter = (name: string, device: string): string =>
  `cat /sys/class/infiniband/${device}/ports/1/hw_counters/${name}`;

const steps: readonly Step[] = [
  bothUp,
  ...bothWays('writes, reads, sends, atomics', 'IPv4', [
    `ib_write_bw -n 50 ${perftest}`,
    `ib_read_bw -n 50 ${perftest}`,
    `ib_send_bw -n 50 ${perftest}`,
    `ib_atomic_bw -n 50 -A FETCH_AND_ADD ${perftest}`,
  ]),
  ...([1, 0] as const).map((server) => ({
    title: `rdma_cm: rping of 8,000 bytes, data checked, ${server === 1 ? 'the HCA' : 'Soft-RoCE'} asks`,
    async run(stage: Stage) {
      await stage.check(setVersion);
      await stage.check('(rping -s -C 30 -S 8000 -V >/run/rping.log 2>&1 &); sleep 1', { guest: server });
      const client = { guest: server === 1 ? 0 : 1 };
      const output = await stage.check(`rping -c -a ${addresses[server]} -C 30 -S 8000 -V -v`, client);
      const pings = output.split('\n').filter((line) => line.startsWith('ping data'));
      if (pings.length !== 30) throw new ScenarioFailure(output);
      return '30 pings';
    },
  })),
  ...([1, 0] as const).map((server) =>
    storageStep(
      addresses[server],
      server,
      server === 1 ? ': the disk is behind Soft-RoCE' : ': behind the HCA',
    ),
  ),
  {
    title: 'Soft-RoCE has seen duplicates and packets out of order, and asked again itself',
    async run(stage) {
      const names = ['duplicate_request', 'out_of_seq_request', 'retry_exceeded_err', 'send_rnr_err'];
      const texts: string[] = [];
      for (const name of names) texts.push(await stage.check(counter(name, 'rxe0'), { guest: 1 }));
      const [duplicates, outOfSequence, exceeded] = texts.map(Number);
      const text = names.map((name, index) => `${name} ${texts[index]!.trim()}`).join(', ');
      if (!(duplicates! > 0 && outOfSequence! > 0) || exceeded !== 0) throw new ScenarioFailure(text);
      return text;
    },
  },
];

export const softRoceFaults: Scenario = {
  ...softRoceEnds,
  name: 'soft-roce-faults',
  title: 'the adapter and Soft-RoCE over a cable that loses, doubles, damages and reorders packets',
  faults: badCable,
  steps,
};
