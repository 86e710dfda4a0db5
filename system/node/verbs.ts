/** What a program's verbs library is given: its thread, its memory, and the devices its kernel drives. */
import type { ProgramContext as HostContext } from '../../host/index.ts';
import type { VerbsPlatform } from '../../userlib/index.ts';
import type { HostNode } from './host-node.ts';

/** The verbs of one program: `getDeviceList(verbs)` lists its devices. */
export type Verbs = VerbsPlatform;

export function verbsOf(node: HostNode, { cpu, memory, costs, process }: HostContext): Verbs {
  const { driver } = node;
  return {
    cpu,
    memory,
    costs,
    devices: driver === undefined ? [] : [driver],
    tap: node.operations,
    onExit: (hook) => process.onExit(hook),
  };
}
