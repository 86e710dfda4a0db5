/** Program lines, compared with stacks as V8 writes them. */
import { describe, expect, it } from 'vitest';
import { ProgramLines } from './program-lines.ts';

const isLibrary = (frame: string): boolean => frame.includes('/library/') || frame.includes('node:');
const stackOf = (...frames: readonly string[]): string =>
  ['Error: here', ...frames.map((frame) => `    at ${frame}`)].join('\n');
const post = 'postSend (file:///library/post-send.ts:10:3)';

describe('lines of a program', () => {
  it('names the line of the program, and those of its helpers down to the call', () => {
    const lines = new ProgramLines('/home/program.ts', isLibrary);
    const direct = lines.note(0, stackOf(post, 'async host0 (file:///home/program.ts:9:3)'));
    const helped = lines.note(
      0,
      stackOf(
        post,
        'sendOne (file:///home/program.ts:40:5)',
        'async Promise.all (index 0)',
        'async sendAll (file:///home/program.ts:30:5)',
        'async host0 (file:///home/program.ts:8:3)',
        'process.processTicksAndRejections (node:internal/process/task_queues:104:5)',
      ),
    );
    expect(lines.lineOf(direct)).toEqual({ line: '/home/program.ts:9', within: [] });
    expect(lines.lineOf(helped)).toEqual({
      line: '/home/program.ts:8',
      within: ['/home/program.ts:30', '/home/program.ts:40'],
    });
  });

  it('prefers the program to files of helpers, also to one that calls the program', () => {
    const lines = new ProgramLines('/home/program.ts', isLibrary);
    const name = lines.note(
      0,
      stackOf(
        post,
        'send (file:///home/helpers.ts:4:5)',
        'body (/home/program.ts:8:3)',
        'async start (/home/scene.ts:2:3)',
      ),
    );
    expect(lines.lineOf(name)).toEqual({ line: '/home/program.ts:8', within: ['/home/helpers.ts:4'] });
    const foreign = lines.note(0, stackOf(post, 'send (file:///home/helpers.ts:5:5)'));
    expect(lines.lineOf(foreign)).toEqual({ line: '/home/helpers.ts:5', within: [] });
  });

  it('omits a frame that all calls of a host share, for that host only', () => {
    const lines = new ProgramLines('/home/program.ts', isLibrary);
    const calls = [20, 21].map((line) =>
      lines.note(
        0,
        stackOf(
          post,
          `open (/home/program.ts:${line}:1)`,
          'async main (/home/program.ts:12:1)',
          'host0 (/home/program.ts:3:1)',
        ),
      ),
    );
    const other = lines.note(
      1,
      stackOf(post, 'main (/home/program.ts:13:1)', 'host1 (/home/program.ts:4:1)'),
    );
    expect(calls.map((name) => lines.lineOf(name)?.line)).toEqual([
      '/home/program.ts:20',
      '/home/program.ts:21',
    ]);
    expect(lines.lineOf(other)).toEqual({ line: '/home/program.ts:4', within: ['/home/program.ts:13'] });
    // With one call that lacks the frame, the frame is informative.
    lines.note(0, stackOf(post, 'host0 (/home/program.ts:5:1)'));
    expect(calls.map((name) => lines.lineOf(name)?.line)).toEqual([
      '/home/program.ts:3',
      '/home/program.ts:3',
    ]);
  });

  it('returns no line for a stack of the library alone', () => {
    const lines = new ProgramLines(undefined, isLibrary);
    expect(lines.note(0, stackOf(post))).toBe(undefined);
    expect([lines.lineOf(undefined), lines.lineOf('7')]).toEqual([undefined, undefined]);
  });
});
