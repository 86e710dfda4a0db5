/**
 * The operations that a program has posted, as a table that shows one section at a time: line, verb, bytes, latency,
 * and a button that opens the diagram.
 */
import { html, nothing, type TemplateResult } from 'lit-html';
import { bytesText, countText, timeText } from '../../../explain/text/format.ts';
import type { OperationName, PostedOperation } from '../../protocol.ts';

const rowsMax = 20;
const titles = ['line', 'operation', 'posted at', 'latency', 'in the diagram'] as const;

/** @param first index of the first displayed row */
export function postedTable(
  operations: readonly PostedOperation[],
  first: number,
  act: { readonly show: (operation: OperationName) => void; readonly goTo: (first: number) => void },
): TemplateResult {
  if (operations.length === 0) return html``;
  const shown = operations.slice(first, first + rowsMax);
  const pages =
    operations.length <= rowsMax
      ? nothing
      : html`<div class="row">
        <button ?disabled=${first === 0} @click=${() => act.goTo(Math.max(0, first - rowsMax))}>Earlier operations</button>
        <button ?disabled=${first + rowsMax >= operations.length} @click=${() => act.goTo(first + rowsMax)}>Later operations</button>
        <span>${first + 1} to ${first + shown.length} of ${countText(operations.length)}</span></div>`;
  return html`<h2>Operations of the program</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Operations of the program"><table class="posted">
      <thead><tr>${['host, number', ...titles].map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>
      <tbody>${shown.map((operation) => rowOf(operation, act.show))}</tbody></table></div>${pages}`;
}

function rowOf(operation: PostedOperation, show: (operation: OperationName) => void): TemplateResult {
  const { node, ordinal, line, operation: verb, payloadBytes, postedPs, latencyPs } = operation;
  const bytes = payloadBytes === 0 ? '' : `, ${bytesText(payloadBytes)}`;
  const state = operation.hasFailed ? ' failed' : '';
  const isShown = latencyPs !== undefined && operation.isOnDevice;
  const place = html`${
    isShown
      ? html`<button @click=${() => show({ node, ordinal })} aria-label="Show operation ${ordinal} of host ${node}, ${verb} of line ${line ?? 'unknown'}, in the diagram">Show</button>`
      : latencyPs === undefined
        ? ''
        : 'flushed before it began'
  }`;
  const cells = [
    line ?? '',
    `${verb}${bytes}${state}`,
    timeText(postedPs),
    latencyPs === undefined ? 'under way' : timeText(latencyPs),
    place,
  ];
  return html`<tr><th scope="row">${node}, ${ordinal}</th>${cells.map((cell, at) => html`<td data-label=${titles[at]!}>${cell}</td>`)}</tr>`;
}
