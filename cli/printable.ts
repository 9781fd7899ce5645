/**
 * Replaces control characters, with which a text of somebody else could move the cursor of a terminal or hide what it says.
 * Line feeds and tabs stay.
 */
export const printable = (text: string) => text.replace(/(?![\t\n])\p{Cc}/gu, '?');
