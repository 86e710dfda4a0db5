/** Cost of a WRITE with this many connected QPs; each number in a process of its own. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { tableOf } from '../explain/text/table.ts';
import type { ConnectionCosts } from './connections.ts';
import { calibration, type Figure } from './figure.ts';

const module = new URL(`./connections${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

export interface QpCosts {
  readonly costs: readonly ConnectionCosts[];
  readonly figures: readonly Figure[];
}

/** Measures each number of QPs. */
export function qpCostsOf(numbers: readonly number[]): QpCosts {
  const costs: ConnectionCosts[] = [];
  const figures: Figure[] = [];
  for (const qps of numbers) {
    const beside = calibration();
    const out = execFileSync(process.execPath, [fileURLToPath(module), `${qps}`], { encoding: 'utf8' });
    const cost = JSON.parse(out) as ConnectionCosts;
    costs.push(cost);
    const unit = 'µs of processor time per WRITE';
    figures.push({ name: `qps-${qps}`, value: cost.cpuUsPerWrite, unit, calibration: beside });
  }
  return { costs, figures };
}

export function qpTableOf(costs: readonly ConnectionCosts[]): string {
  const head = [
    ...['QPs at each host', 'processor µs per WRITE', 'simulated ns per WRITE'],
    ...['resident MiB', 'heap MiB', 'processor s to connect'],
  ];
  const rows = costs.map(({ qps, cpuUsPerWrite, nsPerWrite, residentMib, heapMib, setUpSeconds }) => [
    qps.toLocaleString('en'),
    cpuUsPerWrite.toPrecision(3),
    nsPerWrite.toFixed(0),
    residentMib.toFixed(0),
    heapMib.toFixed(0),
    setUpSeconds.toPrecision(2),
  ]);
  return tableOf('Cost of a WRITE against QPs', head, rows);
}
