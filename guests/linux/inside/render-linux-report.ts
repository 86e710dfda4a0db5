/** The report of `hca linux` as text, made from the JSON alone. */
import { countText, shareText, timeText } from '../../../explain/text/format.ts';
import { tableOf } from '../../../explain/text/table.ts';
import type { PcTimeAccount } from '../../pc/index.ts';
import { renderDevicesReport } from '../../serve/index.ts';
import type { LinuxCommandReport, LinuxHostReport, LinuxReport } from '../booted/index.ts';
import { budgetTable } from '../budget.ts';
import { interruptTable } from '../guest-report.ts';
import { kernelCostsText } from './kernel-costs-text.ts';

/** Names of the kinds of time, in the order in which they are shown. */
const kinds = {
  executingPs: 'instructions',
  loadsPs: 'loads from the HCA',
  storesPs: 'stores to the HCA',
  interruptsPs: 'interrupts',
  wakingPs: 'waking up',
  chancePs: 'chance (--jitter)',
  idlePs: 'halted',
} as const satisfies Record<keyof PcTimeAccount, string>;

/** Everything; the tables of two hosts are at most 80 columns wide. */
export const renderLinuxReport = (report: LinuxReport): string =>
  [
    renderDevicesReport(report.devices),
    renderHosts(report),
    ...linesOf(report),
    ...(report.kernels ?? []).map(kernelCostsText),
  ].join('\n');

/** Commands, interrupts, budgets, and where each host's time went. */
export function renderHosts({ commands, hosts, interrupts, budget = [] }: LinuxReport): string {
  return [
    ...(interrupts.length === 0 ? [] : [interruptTable(interrupts)]),
    ...(budget.length === 0 ? [] : [budgetTable(budget)]),
    ...(commands.length === 0 ? [] : [commandTable(commands)]),
    timeTable(hosts),
    countTable(hosts),
  ].join('\n');
}

const commandCharacters = 24;

const commandTable = (commands: readonly LinuxCommandReport[]): string =>
  tableOf(
    'Commands: simulated time from begin to end, and instructions meanwhile',
    ['command', 'began', 'took', 'instructions', 'exit'],
    commands.map(({ host, command, beganPs, endedPs, instructions, exitStatus, hasTimedOut }) => [
      `host${host} ${shortened(command)}`,
      timeText(beganPs),
      timeText(endedPs - beganPs),
      countText(instructions),
      hasTimedOut ? 'time out' : exitStatus,
    ]),
  );

function shortened(command: string): string {
  const [line = ''] = command.split('\n');
  const isWhole = line === command && line.length <= commandCharacters;
  return isWhole ? line : `${line.slice(0, commandCharacters - 1)}…`;
}

/** The parts of each host's time add up to the time since power-on. */
function timeTable(hosts: readonly LinuxHostReport[]): string {
  const rows = Object.entries(kinds).map(([kind, name]) => [
    name,
    ...hosts.flatMap(({ time, elapsedPs }) => {
      const ps = time[kind as keyof PcTimeAccount];
      return [timeText(ps), shareText(ps, elapsedPs)];
    }),
  ]);
  return tableOf(
    "Where each host's processor spent its time since power-on",
    ['', ...hosts.flatMap(({ name }) => [name, ''])],
    [
      ...rows,
      ['in all', ...hosts.flatMap(({ elapsedPs }) => [timeText(elapsedPs), shareText(elapsedPs, elapsedPs)])],
    ],
  );
}

const countTable = (hosts: readonly LinuxHostReport[]): string =>
  tableOf(
    'What each host did',
    ['', ...hosts.map(({ name }) => name)],
    [
      ['instructions since power-on', ...hosts.map(({ instructions }) => countText(instructions))],
      ['interrupts: messages (MSI-X)', ...hosts.map(({ interrupts }) => countText(interrupts.messages))],
      ['interrupts: the pin', ...hosts.map(({ interrupts }) => countText(interrupts.pins))],
      ['MMIO loads', ...hosts.map(({ mmio }) => countText(mmio.loads))],
      ['MMIO stores', ...hosts.map(({ mmio }) => countText(mmio.stores))],
      ['quanta since the snapshot', ...hosts.map(({ quanta }) => countText(quanta))],
      ['those that a store ended', ...hosts.map(({ cutQuanta }) => countText(cutQuanta))],
    ],
  );

function linesOf({ versions, seed, pc, meaning, devices }: LinuxReport): string[] {
  const { kernel, rdmaCore, perftest, v86 } = versions;
  return [
    `Linux ${kernel}, rdma-core ${rdmaCore}, perftest ${perftest},`,
    `on a PC of this process (v86 ${v86}) at ${countText(pc.coreMhz)} MHz, seed ${seed}; simulated ${timeText(devices.elapsedPs)}`,
    ...[
      `Measured: ${meaning.measured}`,
      `Estimated: ${meaning.estimated}`,
      `Not modelled: ${meaning.notModelled}`,
    ],
  ].flatMap((text) => folded(text));
}

const lineCharacters = 80;

/** Words in lines of at most 80 characters, the second and later ones indented. */
function folded(text: string): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > lineCharacters) {
      lines.push(line);
      line = `  ${word}`;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
