/**
 * Commands and registers of the ConnectX-3: BAR0 with the command register (HCR), the command table, and the state of bring-up.
 *
 *   BAR0 ──> ControlRegisters ──> CommandRegister ──> command processor ──> CommandTable ──> DeviceState ──> tables, data path
 */
import { hardwareIdOf } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import { type BlockState, connectBlocks, type Wires } from '../../../sim/index.ts';
import type { CommandSet, CommandSetParts, CommandSetPorts } from '../host-interface/index.ts';
import { CommandTable, DeviceState, interruptPin } from './commands/index.ts';
import type { IcmMap } from './icm-map.ts';
import { CommandRegister, ControlRegisters } from './registers/index.ts';

export class ConnectX3CommandSet implements CommandSet {
  readonly source: CommandRegister;
  readonly commands: CommandTable;
  readonly registers: ControlRegisters;
  readonly state: DeviceState;

  constructor(parts: CommandSetParts, icm: IcmMap) {
    const { domain, violations, deviceId, config } = parts;
    this.state = new DeviceState({ ...parts, icm });
    this.commands = new CommandTable(this.state, config);
    this.source = new CommandRegister(violations);
    this.registers = new ControlRegisters({
      domain,
      violations,
      interruptPin,
      hardwareId: hardwareIdOf(deviceId),
    });
  }

  get specialQpBase(): number {
    return this.state.specialQpBase;
  }

  connect(ports: CommandSetPorts): void {
    const { registers, source: hcr, state } = this;
    connectBlocks({ registers, hcr, state }, commandSetWires({ ...ports, hcr }));
  }

  reset(cycle: Cycles): void {
    this.state.reset(cycle);
    this.registers.reset();
  }

  inspect(): BlockState {
    return { controlRegisters: this.registers.inspect(), deviceState: this.state.inspect() };
  }
}

interface CommandSetBlocks {
  readonly registers: ControlRegisters;
  readonly hcr: CommandRegister;
  readonly state: DeviceState;
}

/** Wires of the blocks: from each port to the block that is called through it. */
function commandSetWires(b: Pick<CommandSetBlocks, 'hcr'> & CommandSetPorts): Wires<CommandSetBlocks> {
  return {
    registers: { control: b.control, hcr: b.hcr, moderation: b.moderation },
    hcr: { processor: b.processor },
    state: { dataPath: b.dataPath, events: b.events, drains: b.drains, tcp: b.tcp },
  };
}
