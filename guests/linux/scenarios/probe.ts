/** The stock drivers' probe, a reload and a restart of the guest: the first steps of every user of the adapter. */

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { linuxSequence } from '../../../build/pages/probe-sequence.ts';
import { packageFolder } from '../../../runtime/package-folder.ts';
import { servedProfile } from '../../serve/index.ts';
import { loadWithoutWarning, pingPong, unload } from './driver.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

/** Required entries of a listing, each with its meaning. @throws ScenarioFailure naming a missing one */
function demand(listing: string, wanted: Readonly<Record<string, RegExp>>): void {
  for (const [meaning, pattern] of Object.entries(wanted)) {
    if (!pattern.test(listing)) throw new ScenarioFailure(`no ${meaning} (${pattern}) in:\n${listing}`);
  }
}

/** Number of times Linux posts each command, by docs/reference/probe-sequence.md. */
function knownCommands(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { command, count } of linuxSequence().steps)
    counts.set(command, (counts.get(command) ?? 0) + count);
  return counts;
}

async function portState(stage: Stage): Promise<string> {
  const listing = await stage.check('ibv_devinfo -v');
  demand(listing, {
    'adapter of Mellanox': /vendor_id:\s+0x02c9/,
    ConnectX: /vendor_part_id:\s+4099/,
    'active port': /state:\s+PORT_ACTIVE/,
    'physical link': /phys_state:\s+LINK_UP/,
    'InfiniBand port': /link_layer:\s+InfiniBand/,
    LID: /port_lid:\s+[1-9]/,
    GID: /GID\[\s*0\]:\s+fe80:/,
  });
  return listing
    .match(/active_width.*|active_speed.*|port_lid.*/g)!
    .map((line) => line.replace(/\s+/g, ' '))
    .join(', ');
}

/** `hca devinfo` of the served adapter, in a separate process, with a completion vector for each of the guest's processors. */
function simulatedDevinfo(processors: number): string {
  const command = join(packageFolder, 'bin/hca.js');
  const set = `driver.completionVectorsMax=${processors}`;
  const parameters = [command, 'devinfo', '--profile', servedProfile, '--set', set];
  return execFileSync(process.execPath, parameters, { encoding: 'utf8' });
}

/**
 * Compares the output without the kernel's connection manager, which adds its own flag to the port's (IB_PORT_CM_SUP).
 */
async function compareDevinfo(stage: Stage): Promise<string> {
  const listing = await stage.check('rmmod rdma_ucm rdma_cm ib_cm && ibv_devinfo -v && modprobe rdma_ucm');
  const processors = Number(await stage.check('nproc'));
  const [guest, simulated] = [listing, simulatedDevinfo(processors)].map((text) =>
    text.trim().split('\n'),
  ) as [string[], string[]];
  const differences = Array.from({ length: Math.max(guest.length, simulated.length) }, (_, at) => at)
    .filter((at) => guest[at] !== simulated[at])
    .map(
      (at) =>
        `line ${at + 1}: in the guest ${guest[at] ?? 'nothing'}, of hca devinfo ${simulated[at] ?? 'nothing'}`,
    );
  if (differences.length > 0) throw new ScenarioFailure(differences.join('\n'));
  return `${guest.length} lines`;
}

const steps: readonly Step[] = [
  {
    title: 'lspci shows a sane ConnectX-3: link, capabilities, BARs',
    async run(stage) {
      const listing = await stage.check(`lspci -vv -s ${stage.session.adapterAddress(0)}`);
      demand(listing, {
        name: /MT27500 Family \[ConnectX-3\]/,
        'BAR0 of 1 MiB': /Region 0: Memory at \w+ \(64-bit, non-prefetchable\)( \[disabled\])? \[size=1M\]/,
        'prefetchable BAR2': /Region 2: Memory at \w+ \(64-bit, prefetchable\)/,
        'PCI Express endpoint': /Express \(v2\) Endpoint/,
        'link of 8 lanes at 8 GT/s': /LnkSta:.*Speed 8GT\/s.*Width x8/,
        'MSI-X capability': /MSI-X: Enable- Count=\d+ Masked-/,
        'vector table in BAR0': /Vector table: BAR=0 offset=0*[1-9a-f][0-9a-f]*/,
        'error reporting without errors': /UESta:(\s+\w+-)+\s*$/m,
      });
      if (/<unknown>|!!!/.test(listing))
        throw new ScenarioFailure(`lspci cannot read all of it:\n${listing}`);
      return listing.split('\n')[0];
    },
  },
  {
    title: 'mlx4_core and mlx4_ib probe without a warning',
    async run(stage) {
      await loadWithoutWarning(stage);
      return (await stage.check("dmesg | grep -i 'mlx4_core .*bandwidth'")).trim();
    },
  },
  { title: 'ibv_devinfo -v shows an active port', run: portState },
  {
    title: 'from probe to removal the drivers post the commands of docs/reference/probe-sequence.md',
    async run(stage) {
      const processors = Number(await stage.check('nproc'));
      await unload(stage);
      const { nodes } = await stage.session.machine.report();
      const seen = new Map(Object.entries(nodes[0]!.hca.commands).map(([name, { count }]) => [name, count]));
      const known = knownCommands();
      for (const name of new Set([...known.keys(), ...seen.keys()])) {
        const more = moreCommands(name, processors);
        const [expected, found] = [(known.get(name) ?? 0) + more, seen.get(name) ?? 0];
        // The number of port state queries depends on when the port comes up.
        const isSame = name === 'MAD_IFC' ? expected > 0 && found > 0 : expected === found;
        if (!isSame)
          throw new ScenarioFailure(
            `${name}: ${found} times, expected ${expected} by docs/reference/probe-sequence.md`,
          );
      }
      await loadWithoutWarning(stage);
      return `${seen.size} kinds of commands`;
    },
  },
  { title: 'hca devinfo prints what ibv_devinfo -v prints, line by line', run: compareDevinfo },
  {
    title: 'the drivers unload and load once more, and data moves afterwards',
    async run(stage) {
      await unload(stage);
      await loadWithoutWarning(stage);
      await pingPong(stage);
      return undefined;
    },
  },
  {
    title: 'the guest restarts with the drivers loaded, and finds the adapter as it was at power-on',
    needsQemu: true,
    async run(stage) {
      await stage.qemuSession.guest(0).restart();
      await loadWithoutWarning(stage);
      await portState(stage);
      await pingPong(stage);
      return undefined;
    },
  },
];

/**
 * The driver reads the frequency of the core clock by one more QUERY_HCA if the device has timestamps (Linux
 * drivers/net/ethernet/mellanox/mlx4/main.c, mlx4_init_hca), which the device of the golden captures did not advertise.
 */
const clockQueries = 1;

/** Processors of the guest whose commands the page has: each has an event queue. */
const knownProcessors = 2;
const ofEventQueues: ReadonlySet<string> = new Set(['SW2HW_EQ', 'HW2SW_EQ']);

/** Commands of this kind beyond those of the page. */
function moreCommands(name: string, processors: number): number {
  if (name === 'QUERY_HCA') return clockQueries;
  return ofEventQueues.has(name) ? processors - knownProcessors : 0;
}

export const probe: Scenario = {
  name: 'probe',
  title: 'probe, unload, reload and restart',
  hcas: 1,
  isCabled: false,
  guests: 1,
  faults: [],
  isLoaded: false,
  steps,
};
