import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex, PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentLine } from './agent-line.ts';
import { GuestError } from './guest-error.ts';
import { agentScript } from './image/init-scripts.ts';

/** The guest's actual script over pipes instead of a serial port, run by a shell that limits its input, as busybox's does. */
class RealAgent {
  readonly folder = mkdtempSync(join(tmpdir(), 'agent-'));
  readonly process: ChildProcess;
  readonly line: AgentLine;

  constructor() {
    const script = join(this.folder, 'agent');
    writeFileSync(script, agentScript.replaceAll('/run/', `${this.folder}/`));
    this.process = spawn('bash', [script], { stdio: ['pipe', 'pipe', 'ignore'], detached: true });
    this.line = new AgentLine(Duplex.from({ readable: this.process.stdout!, writable: this.process.stdin! }));
  }

  kill(): void {
    process.kill(-this.process.pid!, 'SIGKILL');
  }

  end(): void {
    if (this.process.exitCode === null && this.process.signalCode === null) this.kill();
    rmSync(this.folder, { recursive: true });
  }
}

describe('the line to the agent', () => {
  let agent: RealAgent;
  beforeEach(async () => {
    agent = new RealAgent();
    await agent.line.ready(10);
  });
  afterEach(() => agent.end());

  const run = (command: string, timeoutSeconds = 10) => agent.line.run(command, { timeoutSeconds });

  it('returns output, errors and exit status of commands, one after another', async () => {
    expect(await run('echo one; echo two >&2; exit 3')).toMatchObject({
      output: 'one\ntwo\n',
      exitStatus: 3,
    });
    expect(await run('true')).toMatchObject({ output: '', exitStatus: 0, hasTimedOut: false });
  });

  it('accepts commands of several lines with quotes, and output that is not ASCII or has no last newline', async () => {
    const result = await run(`cat <<'END'\nit's "ø" \\n $HOME\nEND\nprintf 'no newline'`);
    expect(result.output).toBe('it\'s "ø" \\n $HOME\nno newline');
  });

  it('is not misled by output that looks like its own marks', async () => {
    const forged = '\x1e123456.1 end 0\n\x1e';
    const result = await run(
      `printf '${forged.replaceAll('\x1e', '\\036').replaceAll('\n', '\\n')}'; exit 7`,
    );
    expect(result).toMatchObject({ output: forged, exitStatus: 7 });
  });

  it('ends commands that take too long, with all their processes, and continues', async () => {
    const marker = join(agent.folder, 'late');
    const result = await run(`(sleep 2; touch ${marker}) & echo begun; sleep 60`, 1);
    // Some shells report that it was killed.
    expect(result).toMatchObject({ output: expect.stringMatching(/^begun\n/), hasTimedOut: true });
    expect(await run(`sleep 1.5; ls ${marker} 2>/dev/null | wc -l`)).toMatchObject({ output: '0\n' });
  });

  it('drops later output of a program that a command left running', async () => {
    await run('(sleep 0.3; echo late) &');
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect((await run('echo mine')).output).toBe('mine\n');
  });

  it('passes output on as it arrives', async () => {
    const heard: string[] = [];
    await agent.line.run('echo a; sleep 0.2; echo b', {
      timeoutSeconds: 10,
      onOutput: (text) => heard.push(text),
    });
    expect(heard.join('')).toBe('a\nb\n');
    expect(heard.length).toBeGreaterThan(1);
  });

  it('reports when the peer disconnects in the middle of a command', async () => {
    const running = run('sleep 3');
    setTimeout(() => agent.kill(), 100);
    await expect(running).rejects.toThrow(GuestError);
    await expect(run('true')).rejects.toThrow('gone');
  });
});

describe('the line to an agent that sends in pieces', () => {
  /** Both directions are controlled by the test. */
  function pieces(): { line: AgentLine; say(text: string): void; heard(): string } {
    const fromGuest = new PassThrough();
    const toGuest = new PassThrough();
    const line = new AgentLine(Duplex.from({ readable: fromGuest, writable: toGuest }));
    return { line, say: (text) => void fromGuest.write(text), heard: () => String(toGuest.read() ?? '') };
  }

  it('finds marks in any pieces', async () => {
    const { line, say, heard } = pieces();
    for (const character of '\x1eready\n') say(character);
    await line.ready(5);
    const running = line.run('x', { timeoutSeconds: 5 });
    await new Promise(setImmediate);
    const token = heard().split(' ')[0]!;
    for (const character of `noise\x1e${token} begin\nout\x1eput\n\x1e${token} end 5\n`) {
      say(character);
      await new Promise(setImmediate);
    }
    expect(await running).toMatchObject({ output: 'out\x1eput\n', exitStatus: 5 });
  });

  it('recognises a guest that restarted in the middle of a command', async () => {
    const { line, say } = pieces();
    say('\x1eready\n');
    await line.ready(5);
    const running = line.run('x', { timeoutSeconds: 5 });
    say('SeaBIOS\x1eready\n');
    await expect(running).rejects.toThrow('restarted by itself');
  });

  it('waits for the next agent when a restart is intended', async () => {
    const { line, say } = pieces();
    say('\x1eready\n');
    await line.ready(5);
    line.expectRestart();
    setTimeout(() => say('\x1eready\n'), 50);
    await line.ready(5);
  });

  it('gives up on a guest that never starts', async () => {
    await expect(pieces().line.ready(0.05)).rejects.toThrow('not started within');
  });
});
