/**
 * Registering and deregistering memory: system call, pins, entries, and a command that ends with an interrupt.
 *
 *     ibv_reg_mr     call ─ pin ─ MTT ─ SW2HW_MPT (mailbox read, entry written)
 *     ibv_dereg_mr   call ─ HW2SW_MPT (entry read, status written) ─ unpin
 *
 * Pages are present, and the tables of ICM are mapped: nothing faults, no MAP_ICM is needed. Sources: driver/mr.ts,
 * driver/command-interface.ts, hw/hca/connectx3/commands/memory-regions.ts.
 */

import { mpt } from '../../abi/index.ts';
import { pageBytes } from '../../base/index.ts';
import type { Path } from './path.ts';
import { gathered, type Terms } from './terms.ts';
import { asyncVector, interruptTerms } from './waiting.ts';

/** Dwords of the command register; the last one starts the command. */
const registerDwords = 7;
const dwordBytes = 4;

export const pagesOf = (lengthBytes: number): number => Math.max(1, Math.ceil(lengthBytes / pageBytes));

export function registrationTerms(path: Path, lengthBytes: number): Terms {
  const { cost } = path.config.host;
  const pages = pagesOf(lengthBytes);
  return gathered([
    ...systemCall(path),
    { name: 'pin', ps: path.core(cost.pinPerPage * pages) },
    { name: 'register', ps: path.core(cost.registerRegionFixed + cost.registerRegionPerPage * pages) },
    ...commandTerms(path),
  ]);
}

export function deregistrationTerms(path: Path, lengthBytes: number): Terms {
  const { cost } = path.config.host;
  const pages = pagesOf(lengthBytes);
  return gathered([
    ...systemCall(path),
    ...commandTerms(path),
    { name: 'deregister', ps: path.core(cost.deregisterRegionFixed + cost.deregisterRegionPerPage * pages) },
    { name: 'unpin', ps: path.core(cost.unpinPerPage * pages) },
  ]);
}

function systemCall(path: Path): Terms {
  const { systemCallEntry, systemCallExit, createObject } = path.config.host.cost;
  return [
    { name: 'systemCall', ps: path.core(systemCallEntry + systemCallExit) },
    { name: 'objects', ps: path.core(createObject) },
  ];
}

/** A command that reads an MPT entry and writes it or one byte of it (one TLP either way), completed by event. */
function commandTerms(path: Path): Terms {
  const { cost } = path.config.host;
  const { commandDecodeCycles, regionCycles } = path.config.hca.control;
  const { bus } = path;
  return [
    { name: 'commandRegister', ps: path.core(cost.mmioLoad) + bus.loadPs() },
    { name: 'commandPost', ps: path.core(cost.commandPost + registerDwords * cost.mmioStore) },
    { name: 'commandPost', ps: bus.storePs(dwordBytes) },
    // Latched in the cycle after it is posted (command-processor.ts).
    { name: 'commandWork', ps: path.hca(1 + commandDecodeCycles + regionCycles) },
    // The engine sees each DMA request in the next cycle, and the command continues one cycle later.
    { name: 'commandRead', ps: path.hca(2) + bus.readPs(mpt.sizeBytes) },
    { name: 'commandWrite', ps: path.hca(2) },
    { name: 'commandEvent', ps: path.commandEventPs() },
    ...interruptTerms(path, asyncVector),
    { name: 'commandComplete', ps: path.core(cost.commandComplete) },
  ];
}
