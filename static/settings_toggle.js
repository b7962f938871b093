/* Shows and hides the settings column on narrow screens. Given: element, LABEL. */
const button = element.querySelector('button');
button.textContent = LABEL;
button.setAttribute('aria-controls', 'settings-column');
button.addEventListener('click', () => {
  const open = document.getElementById('settings-column').classList.toggle('open');
  button.setAttribute('aria-expanded', String(open));
});
