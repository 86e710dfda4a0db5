/** Inputs of a program's verbs library: its thread, its memory, and the devices of its kernel. */
import type { CoreThread, ProgramContext as HostContext } from '../../host/index.ts';
import type { OperationTap, VerbsPlatform } from '../../userlib/index.ts';
import type { HostNode } from './host-node.ts';
import type { RaceWatch } from './race-watch.ts';

/** The ledger of operations, and the watch of buffers next to it. */
function watchedTap({ operations }: HostNode, races: RaceWatch, processId: number): OperationTap {
  return {
    watch: races.bufferWatchOf(processId),
    opened: (qpNumber, requestCount) => operations.opened(qpNumber, requestCount),
    closed: (qpNumber) => operations.closed(qpNumber),
    posted: (qpNumber, counter, opcode, atPs) => operations.posted(qpNumber, counter, opcode, atPs),
    completed: (qpNumber, counter, atPs) => operations.completed(qpNumber, counter, atPs),
  };
}

function tapOf(node: HostNode, cpu: CoreThread, processId: number): OperationTap {
  const { races, marked, operations, journal } = node;
  if (marked !== undefined) return marked.tapOf(cpu, operations);
  const tap = races === undefined ? operations : watchedTap(node, races, processId);
  return journal === undefined ? tap : journal.tapOf(cpu, tap);
}

/** The verbs of one program: `getDeviceList(verbs)` lists its devices. */
export type Verbs = VerbsPlatform;

export function verbsOf(node: HostNode, { cpu, memory, costs, process }: HostContext): Verbs {
  const { driver, userCopies } = node;
  const { postSection } = process;
  return {
    cpu,
    memory,
    costs,
    devices: driver === undefined ? [] : [driver],
    tap: tapOf(node, cpu, process.id),
    copied: (lengthBytes) => {
      userCopies.count++;
      userCopies.bytes += lengthBytes;
    },
    onExit: (hook) => process.onExit(hook),
    ...(postSection === undefined
      ? {}
      : { waitToPost: (cycles: number) => postSection.enter(cpu, cycles, process.programCount) }),
  };
}
