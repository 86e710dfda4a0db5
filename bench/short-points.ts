/** Many short simulations in one process, like a sweep over a parameter: the time of one of them, and its parts. */
import { Machine } from '../machine/index.ts';
import { calibration, type Figure } from './figure.ts';
import { type Load, perfArgsOf } from './write-load.ts';

const points = 200;
const load: Load = { verb: 'write', sizeBytes: 64, qpCount: 1, messagesPerQp: 100, outstanding: 16 };
const moduleUrl = new URL(`./write-load${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/** Runs 200 points of 100 WRITEs, each on a machine of its own. */
export async function figureOfShortPoints(): Promise<Figure> {
  const beside = calibration();
  const parts = { 'creating the machine': 0, 'drivers, connection, 100 WRITEs': 0, 'report and end': 0 };
  let beforeMs = performance.now();
  const end = (part: keyof typeof parts): void => {
    const nowMs = performance.now();
    parts[part] += (nowMs - beforeMs) / points;
    beforeMs = nowMs;
  };
  for (let point = 0; point < points; point++) {
    const machine = await Machine.create({ seed: point });
    end('creating the machine');
    await runOn(machine);
    end('drivers, connection, 100 WRITEs');
    await machine.report();
    await machine[Symbol.asyncDispose]();
    end('report and end');
  }
  const value = Object.values(parts).reduce((sum, ms) => sum + ms, 0);
  return {
    name: 'short-point',
    value,
    unit: `ms of wall time, one of ${points}`,
    calibration: beside,
    parts,
  };
}

async function runOn(machine: Machine): Promise<void> {
  const args = perfArgsOf(load);
  await machine.load({ node: 0, run: { url: moduleUrl, exportName: 'client' }, args });
  await machine.load({ node: 1, run: { url: moduleUrl, exportName: 'server' }, args });
  await machine.run();
}
