/** Cost of fabrics with this many hosts; each number in a process of its own. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { FabricCosts } from './fabric-point.ts';
import { calibration, type Figure } from './figure.ts';

const module = new URL(`./fabric-point${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

export function figuresOfFabric(hosts: number): Figure[] {
  const beside = calibration();
  const out = execFileSync(process.execPath, [fileURLToPath(module), `${hosts}`], { encoding: 'utf8' });
  const costs = JSON.parse(out) as FabricCosts;
  const figure = (suffix: string, value: number, unit: string): Figure => ({
    name: `fabric-${hosts}${suffix}`,
    value,
    unit,
    calibration: beside,
  });
  return [
    figure('', costs.cpuUsPerMessage, 'µs of processor time per WRITE'),
    figure('-events', costs.eventsPerSecond, 'events per second'),
    figure('-wall', costs.wallMsPerSimulatedMs, 'ms per simulated ms'),
    figure('-memory', costs.residentMibPerHost, 'MiB per host'),
  ];
}
